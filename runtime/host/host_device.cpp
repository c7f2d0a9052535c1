#include "runtime/host/host_device.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "kernel_src/host/abi.h"
#include "runtime/gpu_function.hpp"
#include "runtime/host/host_module.hpp"
#include "runtime/host/processor.hpp"
#include "runtime/host/workers.hpp"

namespace broach::runtime {
namespace {

constexpr std::size_t kMemoryAlignment = 256;

class HostFunction final : public Function {
 public:
  HostFunction(host::HostKernel kernel, std::shared_ptr<host::Workers> workers,
               std::uint32_t max_shared_bytes)
      : kernel_(std::move(kernel)),
        workers_(std::move(workers)),
        max_shared_bytes_(max_shared_bytes) {}

  Result<void> launch(const LaunchConfig& config) const override {
    if (auto fits = check(config); !fits) return fits;
    host::BlockLaunch launch;
    launch.function = kernel_.name;
    launch.entry = kernel_.entry;
    launch.params = config.params != nullptr ? config.params : config.arguments[0];
    for (int i = 0; i < 3; ++i) launch.grid[i] = config.grid[i];
    launch.block_threads = kernel_.record->block_threads;
    launch.static_shared_bytes = kernel_.record->static_shared_bytes;
    launch.dynamic_shared_bytes = config.dynamic_shared_bytes;
    return workers_->run(launch);
  }

  Result<LaunchLimits> live_limits() const override {
    LaunchLimits limits;
    limits.function = kernel_.name;
    limits.static_shared = kernel_.record->static_shared_bytes;
    limits.max_dynamic_shared = max_shared_bytes_ - kernel_.record->static_shared_bytes;
    limits.max_threads = kernel_.record->block_threads;
    limits.launch_bounds = kernel_.record->block_threads;
    limits.source = "device";
    return limits;
  }

  const std::string& name() const noexcept { return kernel_.name; }

 private:
  Result<void> check(const LaunchConfig& config) const {
    const BroachHostRecord& record = *kernel_.record;
    if (config.grid[0] == 0 || config.grid[1] == 0 || config.grid[2] == 0) {
      return refuse(fmt::format("has an empty grid: {} x {} x {}", config.grid[0], config.grid[1],
                                config.grid[2]));
    }
    if (auto fits = check_block(config); !fits) return fits;
    if (auto fits = check_params(config); !fits) return fits;
    if (auto fits = check_kind(config); !fits) return fits;
    const std::uint64_t shared =
        std::uint64_t{record.static_shared_bytes} + config.dynamic_shared_bytes;
    if (shared > max_shared_bytes_) {
      return Error{ErrorCode::kLimitExceeded,
                   fmt::format("a launch of {} needs {} bytes of shared memory; a block has {}",
                               kernel_.name, shared, max_shared_bytes_),
                   {}};
    }
    return {};
  }

  Result<void> check_block(const LaunchConfig& config) const {
    const unsigned flat[3] = {kernel_.record->block_threads, 1, 1};
    const unsigned(&block)[3] = kernel_.geometry != nullptr ? kernel_.geometry->block : flat;
    if (std::equal(std::begin(block), std::end(block), std::begin(config.block))) return {};
    const auto words = [](const auto& dims) {
      return dims[1] == 1 && dims[2] == 1 ? fmt::format("{}", dims[0])
                                          : fmt::format("{} x {} x {}", dims[0], dims[1], dims[2]);
    };
    return refuse(fmt::format("has blocks of {} threads; it was compiled for {}",
                              words(config.block), words(block)));
  }

  Result<void> check_params(const LaunchConfig& config) const {
    const std::uint32_t takes = kernel_.record->params_bytes;
    if (config.params == nullptr && !config.arguments.empty()) {
      if (config.arguments.size() == 1 && config.arguments[0] != nullptr) return {};
      return refuse(
          fmt::format("gets {} arguments; a kernel on the host takes one struct of {} "
                      "bytes",
                      config.arguments.size(), takes));
    }
    if (config.params != nullptr && config.params_bytes == takes) return {};
    return refuse(fmt::format("gets {} bytes of parameters; it takes {}",
                              config.params == nullptr ? 0 : config.params_bytes, takes));
  }

  /// A launch that may overlap the one before need not: here none does.
  Result<void> check_kind(const LaunchConfig& config) const {
    const auto lacks = [&](const char* what) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("a launch of {} {}; the host has none of that", kernel_.name, what),
                   {}};
    };
    if (config.cluster[0] != 0) return lacks("wants clusters of blocks");
    if (config.grid_sync != GridSync::kNone) return lacks("wants grid-wide waits");
    return {};
  }

  Error refuse(std::string_view words) const {
    return Error{
        ErrorCode::kInvalidArgument, fmt::format("a launch of {} {}", kernel_.name, words), {}};
  }

  host::HostKernel kernel_;
  std::shared_ptr<host::Workers> workers_;
  std::uint32_t max_shared_bytes_;
};

class HostModule final : public Module {
 public:
  HostModule(std::unique_ptr<host::HostObject> object,
             const std::shared_ptr<host::Workers>& workers, std::uint32_t max_shared_bytes)
      : object_(std::move(object)) {
    for (const host::HostKernel& kernel : object_->kernels()) {
      functions_.push_back(std::make_unique<HostFunction>(kernel, workers, max_shared_bytes));
    }
  }

  Result<const Function*> function(std::string_view name) override {
    for (const auto& function : functions_) {
      if (function->name() == name) return static_cast<const Function*>(function.get());
    }
    return Error{ErrorCode::kNotFound,
                 fmt::format("the module was not loaded with a function {}", name),
                 {}};
  }

  Result<Symbol> symbol(std::string_view name) override {
    const host::HostVariable found = object_->variable(name);
    if (found.address == nullptr) return no_symbol(name);
    return Symbol{found.address, found.bytes};
  }

  Result<void> set_symbol(std::string_view name, std::span<const std::byte> bytes,
                          Stream) override {
    auto found = symbol(name);
    if (!found) return found.error();
    if (auto fits = check_symbol_bytes(name, *found, bytes.size()); !fits) return fits;
    if (!bytes.empty()) std::memcpy(found->address, bytes.data(), bytes.size());
    return {};
  }

 private:
  std::unique_ptr<host::HostObject> object_;
  std::vector<std::unique_ptr<HostFunction>> functions_;
};

class HostDevice final : public Device {
 public:
  HostDevice(specializer::Target target, std::uint32_t threads)
      : target_(std::move(target)),
        // "host", and behind it the features of "host-x86-64-v3:step=k8".
        name_("host" + target_.name.substr(std::min(target_.name.find(':'), target_.name.size()))),
        workers_(std::make_shared<host::Workers>(threads)) {}

  std::string_view name() const override { return name_; }
  std::string_view driver() const override { return driver_; }
  const specializer::Target& target() const override { return target_; }

  Result<std::unique_ptr<Module>> load(std::span<const std::byte> binary,
                                       std::span<const std::string> functions) override {
    if (std::string why = host::why_not_runnable(target_.name); !why.empty()) {
      return Error{ErrorCode::kUnsupported, std::move(why), {}};
    }
    auto object = host::HostObject::load(binary, functions);
    if (!object) return std::move(object).error();
    return std::unique_ptr<Module>(std::make_unique<HostModule>(std::move(object).value(), workers_,
                                                                target_.max_shared_bytes));
  }

  Result<bool> capturing(Stream) override { return false; }

  Result<void*> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    if (posix_memalign(&memory, kMemoryAlignment, bytes == 0 ? 1 : bytes) != 0) {
      return Error{
          ErrorCode::kOutOfMemory, fmt::format("the host has no {} bytes of memory", bytes), {}};
    }
    std::memset(memory, 0xff, bytes);
    return memory;
  }

  void free(void* memory) noexcept override { std::free(memory); }

  Result<void> copy_to_device(void* to, const void* from, std::size_t bytes) override {
    if (bytes != 0) std::memmove(to, from, bytes);
    return {};
  }

  Result<void> copy_to_host(void* to, const void* from, std::size_t bytes) override {
    if (bytes != 0) std::memmove(to, from, bytes);
    return {};
  }

  Result<void> synchronize(Stream) override { return {}; }

 private:
  specializer::Target target_;
  std::string name_;
  std::shared_ptr<host::Workers> workers_;
  std::string driver_ = "host ABI " + std::to_string(BROACH_HOST_ABI_VERSION);
};

}  // namespace

std::shared_ptr<Device> open_host_device(std::uint32_t threads) {
  auto target = specializer::parse_target(specializer::native_host_target());
  // The native target is a known one by its own definition; a build for another processor has none.
  return std::make_shared<HostDevice>(target ? std::move(target).value() : specializer::Target{},
                                      threads);
}

Result<std::shared_ptr<Device>> open_host_device(const specializer::Target& target,
                                                 std::uint32_t threads) {
  const std::string_view native = specializer::native_host_target();
  const std::string_view processor = std::string_view(target.name).substr(0, target.name.find(':'));
  if (processor != native) {
    return Error{
        ErrorCode::kNotFound, fmt::format("this machine runs {}, not {}", native, target.name), {}};
  }
  if (std::string why = host::why_not_runnable(target.name); !why.empty()) {
    return Error{ErrorCode::kUnsupported, std::move(why), {}};
  }
  return std::shared_ptr<Device>(std::make_shared<HostDevice>(target, threads));
}

}  // namespace broach::runtime
