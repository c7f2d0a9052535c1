#include "tools/contract/sage_exact/kernels.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "specializer/sage_exact/kernel_source.hpp"
#include "specializer/sage_exact/shape.hpp"

namespace broach::contract::sage_exact {

Result<void> Kernels::add(const Bench& bench, SageBoundary boundary, SageSchedule schedule,
                          std::string_view control) {
  SageExactShape shape;
  shape.boundary = boundary;
  shape.schedule = schedule;
  auto plan = specializer::plan(shape, bench.device->target(),
                                {.control = std::string(control), .generic = Switch::kOff});
  if (!plan) return plan.error();
  auto loaded = contract::load(bench, *plan);
  if (!loaded) return loaded.error();
  key_ = loaded->artifact.object->key.key;
  modules_.push_back(std::move(loaded->module));
  return functions_.add(*plan, *modules_.back());
}

Result<Kernels> Kernels::load(const Bench& bench, SageSchedule schedule) {
  Kernels kernels;
  for (const SageBoundary boundary : kBoundaries) {
    if (auto added = kernels.add(bench, boundary, schedule, {}); !added) return added.error();
  }
  return kernels;
}

Result<Kernels> Kernels::plant(const Kernels& sound, const Bench& bench, SageSchedule schedule,
                               std::string_view control) {
  Kernels kernels;
  kernels.functions_ = sound.functions_;
  for (const SageBoundary boundary : kBoundaries) {
    const auto controls = specializer::sage_exact::controls_of(boundary);
    if (std::find(controls.begin(), controls.end(), control) == controls.end()) continue;
    if (auto added = kernels.add(bench, boundary, schedule, control); !added) return added.error();
  }
  return kernels;
}

}  // namespace broach::contract::sage_exact
