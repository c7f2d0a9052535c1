#include <cstdlib>

#include "specializer/compile/identity_record.hpp"
#include "tests/fuzz/target.hpp"

// A remembered compiler: what reads must write to text that reads the same.
BROACH_FUZZ_TARGET(identity) {
  using namespace broach::specializer;
  const auto record = parse_identity_record(broach::fuzz::as_text(data, size));
  if (!record) return 0;
  const auto again = to_text(*record);
  if (!again || parse_identity_record(*again) != record) std::abort();
  return 0;
}
