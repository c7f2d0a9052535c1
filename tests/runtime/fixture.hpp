#pragma once

#include <memory>
#include <string>

#include "broach/options.hpp"
#include "broach/runtime.hpp"
#include "broach/window_rows.hpp"
#include "runtime/compose.hpp"
#include "runtime/device.hpp"
#include "runtime/runtime_state.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::test {

/// Options for a device and a cache directory of the test's own, deaf to the user's cache.
inline Options options_in(const TempDir& dir, std::string device = "host") {
  Options options = Options::from_environment();
  options.device = std::move(device);
  options.first_use = FirstUse::kWait;
  options.cache_directories = {dir.path().string()};
  options.read_only_caches.clear();
  options.notice = [](std::string_view) {};
  return options;
}

/// A runtime's state on a device of the test's own.
inline std::unique_ptr<Runtime::State> state_on(std::shared_ptr<runtime::Device> device,
                                                const TempDir& dir,
                                                FirstUse first_use = FirstUse::kWait) {
  Options options = options_in(dir);
  options.first_use = first_use;
  return std::make_unique<Runtime::State>(options, std::move(device), runtime::open_forge(options));
}

/// The smallest shape there is: quick to compile for the host.
inline WindowRowsShape small_shape() {
  WindowRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 1;
  shape.window = 100;
  shape.arith = Arith::kChunk256;
  return shape;
}

}  // namespace broach::test
