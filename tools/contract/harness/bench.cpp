#include "tools/contract/harness/bench.hpp"

namespace broach::contract {

Result<runtime::LoadedPlan> load(const Bench& bench, const specializer::Plan& plan) {
  auto loaded =
      runtime::load_plan(*bench.forge, *bench.device, plan, specializer::OnMiss::kCompile);
  if (!loaded) return loaded;
  runtime::record_live_limits(bench.forge->cache(), *bench.device, loaded->artifact.object->key.key,
                              loaded->live);
  return loaded;
}

}  // namespace broach::contract
