#include <cstdlib>

#include "tests/fuzz/target.hpp"

// A parser with a fault that only a run of four bytes reaches: `tools/fuzz-run --self-test` must
// find it, and the replay must end where a file has it. No other run includes it.
BROACH_FUZZ_TARGET(planted) {
  const std::string_view text = broach::fuzz::as_text(data, size);
  if (text.starts_with('F') && text.substr(1).starts_with('A')) {
    if (text.substr(2).starts_with('L') && text.substr(3).starts_with('L')) std::abort();
  }
  return 0;
}
