#include <cstdlib>

#include "cache/memo_record.hpp"
#include "tests/fuzz/target.hpp"

// Bytes that read as a memo of this name must be exactly the ones that are written for its value.
BROACH_FUZZ_TARGET(memo) {
  using namespace broach;
  const std::string_view text = fuzz::as_text(data, size);
  const auto value = cache::value_of_memo(text, "name");
  if (value && cache::memo_record("name", *value) != text) std::abort();
  // As a value too: a memo of any bytes reads back.
  if (cache::value_of_memo(cache::memo_record("name", text), "name") != text) std::abort();
  return 0;
}
