#include "fuzz/target.hpp"
#include "specializer/manifest.hpp"

BROACH_FUZZ_TARGET(manifest) {
  using namespace broach;
  const auto manifest = specializer::read_manifest("fuzz.json", fuzz::as_text(data, size));
  if (manifest) (void)specializer::distinct_shapes(*manifest, Form::kPrompt).size();
  return 0;
}
