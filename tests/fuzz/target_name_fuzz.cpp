#include <cstdlib>

#include "specializer/target.hpp"
#include "tests/fuzz/target.hpp"

// A target that is read must be known again under its own name.
BROACH_FUZZ_TARGET(target_name) {
  using namespace broach;
  const auto target = specializer::parse_target(fuzz::as_text(data, size));
  if (!target) return 0;
  const auto again = specializer::parse_target(target->name);
  if (!again || again->name != target->name) std::abort();
  return 0;
}
