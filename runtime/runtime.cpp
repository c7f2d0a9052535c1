#include "broach/runtime.hpp"

#include <string>
#include <utility>

#include "runtime/compose.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime_state.hpp"

namespace broach {
namespace {

Result<std::shared_ptr<runtime::Device>> device_for(const Options& options) {
  if (options.device != "auto" && !options.device.empty()) {
    return runtime::open_device(options.device);
  }
  auto cuda = runtime::open_device("cuda");
  if (cuda) return cuda;
  // No GPU is the ordinary case; one that cannot be used is worth a line.
  if (cuda.error().code != ErrorCode::kNotFound) {
    runtime::notice_of(options)("using the host, since the GPU cannot be used: " +
                                cuda.error().message);
  }
  return runtime::open_device("host");
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
