#include "runtime/operator_request.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/load_plan.hpp"

namespace broach::runtime {
namespace {

using specializer::OnMiss;
using specializer::ServedShape;
using specializer::Shape;

/// Refuses while the stream captures: a build takes longer than a capture may, and a load is not
/// an operation that a capture can hold.
Result<void> refuse_capture(Device& device, const Shape& shape, Stream stream) {
  auto capturing = device.capturing(stream);
  if (!capturing) return capturing.error();
  if (!*capturing) return {};
  return Error{ErrorCode::kCapturing,
               fmt::format("the stream is capturing and {} is not loaded yet; ask for the operator "
                           "before the capture begins",
                           specializer::to_text(shape)),
               {}};
}

/// What is built, and how.
struct Wanted {
  ServedShape served;
  MakeLaunch make_launch;
  FirstUse first_use;
};

Result<Operator::Loaded> load(Runtime::State& runtime, const Wanted& wanted,
                              const specializer::Variant& variant, OnMiss on_miss) {
  auto plan = specializer::plan(wanted.served, variant);
  if (!plan) return plan.error();
  auto loaded = load_plan(runtime.forge, *runtime.device, *plan, on_miss);
  if (!loaded) return loaded.error();
  if (wanted.first_use == FirstUse::kWait && loaded->artifact.compiled) {
    // The request waited for a compiler: the next image can be warmed for it.
    runtime.forge.cache().record_miss({plan->family, plan->shape_json, plan->target.name, 1,
                                       loaded->artifact.object->provenance.created_unix_ms});
  }
  const cache::Object& object = *loaded->artifact.object;
  auto launch = wanted.make_launch({wanted.served.shape(), *plan, *loaded->module,
                                    runtime.device->multiprocessors(), runtime.device->target(),
                                    object.limits});
  if (!launch) return launch.error();
  const cache::Key key = object.key.key;
  runtime.background.post([&runtime, key, live = std::move(loaded->live)] {
    record_live_limits(runtime.forge.cache(), *runtime.device, key, live);
  });
  return Operator::Loaded{key,
                          std::move(loaded->module),
                          *std::move(launch),
                          loaded->artifact.layer.name,
                          loaded->artifact.compiled,
                          object.limits};
}

/// Compiles the specialised kernel behind the generic one's back and puts it in its place.
void promote(Runtime::State& runtime, const Wanted& wanted, Operator& op) {
  auto loaded = load(runtime, wanted, {}, OnMiss::kCompile);
  if (!loaded) {
    runtime.notice(fmt::format("the generic kernel goes on serving {}: {}",
                               specializer::to_text(op.shape), loaded.error().message));
    return;
  }
  op.promoted = *std::move(loaded);
  op.serving.store(op.promoted.launch.get(), std::memory_order_release);
}

/// Loads what serves first: under `background` the generic kernel, where the specialised one would
/// have to be compiled. A family without one has the error that says so.
Result<Operator::Loaded> load_first(Runtime::State& runtime, const Wanted& wanted,
                                    bool& is_generic) {
  const bool compiles = wanted.first_use == FirstUse::kWait;
  auto loaded = load(runtime, wanted, {}, compiles ? OnMiss::kCompile : OnMiss::kRefuse);
  is_generic = wanted.first_use == FirstUse::kBackground && !loaded &&
               loaded.error().code == ErrorCode::kNotWarmed && wanted.served.family().has_generic();
  if (!is_generic) return loaded;
  return load(runtime, wanted, {.control = {}, .generic = Switch::kOn}, OnMiss::kCompile);
}

Result<std::shared_ptr<const Operator>> build(Runtime::State& runtime, const Wanted& wanted) {
  bool is_generic = false;
  auto loaded = load_first(runtime, wanted, is_generic);
  if (!loaded) return loaded.error();
  auto op = std::make_shared<Operator>(wanted.served.shape(), runtime.device, *std::move(loaded));
  op->began_generic = is_generic;
  if (is_generic) {
    runtime.background.post([&runtime, wanted, op] { promote(runtime, wanted, *op); });
  }
  return std::shared_ptr<const Operator>(std::move(op));
}

/// Holds the right to build one shape; another thread that wants it waits here, then finds it.
class BuildTurn {
 public:
  BuildTurn(Runtime::State& runtime, const Shape& shape) : runtime_(runtime), shape_(shape) {
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
  Shape shape_;
};

Result<std::shared_ptr<const Operator>> first_request_under(FirstUse first_use,
                                                            Runtime::State& runtime,
                                                            const Shape& shape, Stream stream,
                                                            MakeLaunch make_launch) {
  auto served = specializer::serve(shape, runtime.device->target());
  if (!served) return served.error();
  const Shape& resolved = served->shape();
  if (const auto* known = runtime.operators.find(resolved)) {
    return runtime.operators.insert(shape, *known);
  }
  if (auto idle = refuse_capture(*runtime.device, resolved, stream); !idle) return idle.error();
  const BuildTurn turn(runtime, resolved);
  if (const auto* known = runtime.operators.find(resolved)) {
    return runtime.operators.insert(shape, *known);
  }
  auto built = build(runtime, {*served, make_launch, first_use});
  if (!built) return built.error();
  return runtime.operators.insert(shape, runtime.operators.insert(resolved, *std::move(built)));
}

}  // namespace

Result<std::shared_ptr<const Operator>> first_request(Runtime::State& runtime, const Shape& shape,
                                                      Stream stream, MakeLaunch make_launch) {
  return first_request_under(runtime.first_use, runtime, shape, stream, make_launch);
}

Result<std::shared_ptr<const Operator>> request_specialised(Runtime::State& runtime,
                                                            const Shape& shape, Stream stream,
                                                            MakeLaunch make_launch) {
  if (const auto* known = runtime.operators.find(shape)) return *known;
  const FirstUse first_use =
      runtime.first_use == FirstUse::kNever ? FirstUse::kNever : FirstUse::kWait;
  return first_request_under(first_use, runtime, shape, stream, make_launch);
}

}  // namespace broach::runtime
