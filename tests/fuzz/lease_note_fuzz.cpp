#include <cstdlib>
#include <string>

#include "cache/remote/lease_note.hpp"
#include "cache/remote/printable.hpp"
#include "tests/fuzz/target.hpp"

// A lease's value: what reads must write to text that reads the same, and is shown to people.
BROACH_FUZZ_TARGET(lease_note) {
  using namespace broach::cache::remote;
  const auto note = parse_lease_note(std::string(broach::fuzz::as_text(data, size)));
  if (!note) return 0;
  if (note->pid < 0 || note->since_unix_ms < 0) std::abort();
  const std::string again = to_text(*note);
  if (!is_printable(again) || parse_lease_note(again) != note) std::abort();
  return 0;
}
