#include "broach/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/compose.hpp"
#include "runtime/load_plan.hpp"
#include "runtime/runtime_state.hpp"
#include "specializer/shape.hpp"

namespace broach {
namespace {

Result<std::shared_ptr<runtime::Device>> device_for(const Options& options) {
  if (options.device != "auto" && !options.device.empty()) {
    return runtime::open_device(options.device);
  }
  if (auto cuda = runtime::open_device("cuda")) return cuda;
  return runtime::open_device("host");
}

/// Refuses while the stream captures: a build takes longer than a capture may, and a load is not
/// an operation that a capture can hold.
Result<void> refuse_capture(runtime::Device& device, const WindowRowsShape& shape, void* stream) {
  auto capturing = device.capturing(stream);
  if (!capturing) return capturing.error();
  if (!*capturing) return {};
  return Error{ErrorCode::kCapturing,
               fmt::format("the stream is capturing and {} is not loaded yet; ask for the operator "
                           "before the capture begins",
                           specializer::to_json(shape)),
               {}};
}

Result<std::shared_ptr<const WindowRows::State>> build(Runtime::State& runtime,
                                                       const WindowRowsShape& resolved) {
  auto plan = specializer::plan(resolved, runtime.device->target());
  if (!plan) return plan.error();
  const auto on_miss = runtime.first_use == FirstUse::kNever ? specializer::OnMiss::kRefuse
                                                             : specializer::OnMiss::kCompile;
  auto loaded = runtime::load_plan(runtime.forge, *runtime.device, *plan, on_miss);
  if (!loaded) return loaded.error();
  auto launch = runtime::make_decode_launch(resolved, *plan, *loaded->module);
  if (!launch) return launch.error();
  auto state = std::make_shared<WindowRows::State>();
  state->shape = resolved;
  state->device = runtime.device;
  state->key = loaded->artifact.object->key.key;
  state->module = std::move(loaded->module);
  state->launch = *std::move(launch);
  return std::shared_ptr<const WindowRows::State>(std::move(state));
}

/// Holds the right to build one shape; another thread that wants it waits here, then finds it.
class BuildTurn {
 public:
  BuildTurn(Runtime::State& runtime, const WindowRowsShape& shape)
      : runtime_(runtime), shape_(shape) {
    std::unique_lock lock(runtime_.building_mutex);
    runtime_.built.wait(lock, [&] {
      return std::find(runtime_.building.begin(), runtime_.building.end(), shape_) ==
             runtime_.building.end();
    });
    runtime_.building.push_back(shape_);
  }
  ~BuildTurn() {
    const std::lock_guard lock(runtime_.building_mutex);
    std::erase(runtime_.building, shape_);
    runtime_.built.notify_all();
  }
  BuildTurn(const BuildTurn&) = delete;
  BuildTurn& operator=(const BuildTurn&) = delete;

 private:
  Runtime::State& runtime_;
  WindowRowsShape shape_;
};

Result<WindowRows> first_request(Runtime::State& runtime, const WindowRowsShape& shape,
                                 void* stream) {
  const specializer::Target& target = runtime.device->target();
  if (auto served = specializer::check(shape, target); !served) return served.error();
  const WindowRowsShape resolved = specializer::resolved(shape, target);
  if (const auto* known = runtime.window_rows.find(resolved)) {
    return WindowRows(runtime.window_rows.insert(shape, *known));
  }
  if (auto idle = refuse_capture(*runtime.device, resolved, stream); !idle) return idle.error();
  const BuildTurn turn(runtime, resolved);
  if (const auto* known = runtime.window_rows.find(resolved)) {
    return WindowRows(runtime.window_rows.insert(shape, *known));
  }
  auto built = build(runtime, resolved);
  if (!built) return built.error();
  return WindowRows(
      runtime.window_rows.insert(shape, runtime.window_rows.insert(resolved, *std::move(built))));
}

}  // namespace

Runtime::Runtime(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Runtime::~Runtime() = default;
Runtime::Runtime(Runtime&&) noexcept = default;
Runtime& Runtime::operator=(Runtime&&) noexcept = default;

Result<Runtime> Runtime::create(Options options) {
  if (options.first_use == FirstUse::kBackground) {
    return Error{
        ErrorCode::kUnsupported, "first_use=background is not offered yet; use wait or never", {}};
  }
  auto device = device_for(options);
  if (!device) return device.error();
  return Runtime(
      std::make_unique<State>(options.first_use, *std::move(device), runtime::open_forge(options)));
}

Result<WindowRows> Runtime::window_rows(const WindowRowsShape& shape, void* stream) {
  if (const auto* known = state_->window_rows.find(shape)) return WindowRows(*known);
  return first_request(*state_, shape, stream);
}

std::string Runtime::device_name() const { return std::string(state_->device->name()); }
std::string Runtime::target_name() const { return state_->device->target().name; }

}  // namespace broach
