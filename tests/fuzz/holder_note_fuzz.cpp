#include <cstdlib>

#include "cache/holder_note.hpp"
#include "tests/fuzz/target.hpp"

// A lock's note: what reads must write to text that reads the same.
BROACH_FUZZ_TARGET(holder_note) {
  using namespace broach::cache;
  const auto note = parse_holder_note(broach::fuzz::as_text(data, size));
  if (!note) return 0;
  if (note->pid < 0 || note->since_unix_ms < 0) std::abort();
  if (parse_holder_note(to_text(*note)) != note) std::abort();
  return 0;
}
