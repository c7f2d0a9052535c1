#include "tests/fuzz/limits_target.hpp"

BROACH_FUZZ_TARGET(cubin) {
  using namespace broach;
  static const specializer::Plan plan = fuzz::plan_for("sm_90a", specializer::ArtifactKind::kCubin,
                                                       {{"spill", 256, 0}, {"bounds96", 96, 0}});
  (void)specializer::read_limits(plan, fuzz::as_bytes(data, size), "").ok();
  return 0;
}
