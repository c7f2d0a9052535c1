#include <cstdlib>

#include "cache/failure.hpp"
#include "tests/fuzz/target.hpp"

// A failed compile that a cache remembers: whatever reads must write to text that reads the same.
BROACH_FUZZ_TARGET(failure) {
  using namespace broach;
  const cache::Key key;
  const auto failure = cache::failure_from(key, fuzz::as_text(data, size));
  if (!failure) return 0;
  const auto again = cache::failure_from(key, cache::to_text(*failure));
  if (!again || again->target != failure->target || again->compiler != failure->compiler ||
      again->error.code != failure->error.code || again->error.message != failure->error.message ||
      again->created_unix_ms != failure->created_unix_ms ||
      again->expires_unix_ms != failure->expires_unix_ms) {
    std::abort();
  }
  return 0;
}
