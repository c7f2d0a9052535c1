#pragma once

#include <memory>
#include <string>
#include <utility>

#include "broach/runtime.hpp"
#include "runtime/runtime_state.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/contract/kernel.hpp"

namespace broach::test {

/// A runtime over a cache of its own, and the bench that the contract takes from it.
struct OpenedRuntime {
  explicit OpenedRuntime(const std::string& device) {
    Options options = Options::from_environment();
    options.cache_directories = {dir.path().string()};
    options.device = device;
    auto created = Runtime::create(std::move(options));
    if (!created) {
      why = created.error().message;
      return;
    }
    runtime = std::make_unique<Runtime>(std::move(*created));
    bench = {runtime->state().device.get(), &runtime->state().forge};
  }

  TempDir dir;
  std::unique_ptr<Runtime> runtime;
  contract::Bench bench;
  std::string why;
};

}  // namespace broach::test
