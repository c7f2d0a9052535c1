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
/// Under first use `background` it begins with the generic kernel and is promoted once. The generic
/// one stays loaded: a captured graph may hold it.
///
/// Threads: a launch reads `serving` alone; the promotion writes `promoted` before it.
/// Owns:    the loaded modules; the device outlives them.
struct WindowRows::State {
  struct Loaded {
    cache::Key key;
    std::unique_ptr<runtime::Module> module;
    std::unique_ptr<const runtime::DecodeLaunch> launch;
  };

  WindowRowsShape shape;  ///< Resolved.
  std::shared_ptr<runtime::Device> device;
  Loaded first;
  Loaded promoted;
  std::atomic<const runtime::DecodeLaunch*> serving{nullptr};
};

}  // namespace broach
