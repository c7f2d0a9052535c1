#include "broach/runtime.hpp"

#include <string>
#include <utility>

#include "runtime/compose.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime_state.hpp"

namespace broach {
namespace {

// A GPU of either kind. The host computes on the caller's memory with the processor, so it serves
// only who asks for it: device pointers mean nothing to it.
Result<std::shared_ptr<runtime::Device>> any_gpu() {
  auto cuda = runtime::open_device("cuda");
  if (cuda) return cuda;
  auto hip = runtime::open_device("hip");
  if (hip) return hip;
  const Error& worst = cuda.error().code == ErrorCode::kNotFound ? hip.error() : cuda.error();
  return Error{worst.code,
               "no GPU serves here (cuda: " + cuda.error().message +
                   "; hip: " + hip.error().message +
                   "); device \"host\" (BROACH_DEVICE=host) computes on the processor, in host "
                   "memory",
               cuda.error().detail + hip.error().detail};
}

Result<std::shared_ptr<runtime::Device>> device_for(const Options& options) {
  if (options.device == "auto" || options.device.empty()) return any_gpu();
  return runtime::open_device(options.device);
}

}  // namespace

Runtime::Runtime(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Runtime::~Runtime() = default;
Runtime::Runtime(Runtime&&) noexcept = default;
Runtime& Runtime::operator=(Runtime&&) noexcept = default;

Result<Runtime> Runtime::create(Options options) {
  if (!options.problems.empty()) {
    return Error{ErrorCode::kInvalidArgument, options.problems.front(), {}};
  }
  auto device = device_for(options);
  if (!device) return device.error();
  return Runtime(
      std::make_unique<State>(options, *std::move(device), runtime::open_forge(options)));
}

Metrics Runtime::metrics() const { return runtime::read_metrics(state_->forge.cache()); }

std::string Runtime::device_name() const { return std::string(state_->device->name()); }
std::string Runtime::target_name() const { return state_->device->target().name; }

}  // namespace broach
