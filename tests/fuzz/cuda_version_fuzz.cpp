#include <cstdlib>

#include "specializer/version.hpp"
#include "tests/fuzz/target.hpp"

// The least driver that an object's record names: what reads must write to the same version.
BROACH_FUZZ_TARGET(cuda_version) {
  using namespace broach::specializer;
  const Version version = parse_cuda_words(broach::fuzz::as_text(data, size));
  if (version.stated() && parse_cuda_words(cuda_words(version)) != version) std::abort();
  return 0;
}
