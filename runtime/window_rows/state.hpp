#pragma once

#include <atomic>
#include <memory>

#include "broach/runtime.hpp"
#include "cache/key.hpp"
#include "runtime/device.hpp"
#include "runtime/window_rows/decode_launch.hpp"

namespace broach {

/// A loaded operator. Handles share it; the Runtime that made it keeps it too.
///
/// Owns:    the loaded modules; the device outlives them.
struct WindowRows::State {
  WindowRowsShape shape;  ///< Resolved.
  std::shared_ptr<runtime::Device> device;
  cache::Key key;
  std::unique_ptr<runtime::Module> module;
  std::unique_ptr<const runtime::DecodeLaunch> launch;
};

}  // namespace broach
