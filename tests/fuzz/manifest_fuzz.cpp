#include "specializer/manifest.hpp"
#include "tests/fuzz/target.hpp"

BROACH_FUZZ_TARGET(manifest) {
  using namespace broach;
  const auto manifest = specializer::read_manifest("fuzz.json", fuzz::as_text(data, size));
  if (manifest) (void)specializer::distinct_shapes(*manifest).size();
  return 0;
}
