#include "tests/fuzz/limits_target.hpp"

BROACH_FUZZ_TARGET(host_object) {
  using namespace broach;
  static const specializer::Plan plan = fuzz::plan_for(
      "host-x86-64-v3", specializer::ArtifactKind::kHostSharedObject, {{"sum", 192, 0}});
  (void)specializer::read_limits(plan, fuzz::as_bytes(data, size), "").ok();
  return 0;
}
