#include <cstdlib>
#include <string>
#include <vector>

#include "specializer/compile/flatten.hpp"
#include "tests/fuzz/target.hpp"

// The input is split at zero bytes into up to four sources that may include each other.
BROACH_FUZZ_TARGET(flatten) {
  using namespace broach::specializer::rtc;
  std::vector<Source> sources = {{"m", ""}};
  constexpr std::string_view kNames = "abc";
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == 0 && sources.size() <= kNames.size()) {
      sources.push_back({std::string(1, kNames[sources.size() - 1]), ""});
    } else {
      sources.back().bytes.push_back(static_cast<char>(data[i]));
    }
  }
  const auto text = flatten(sources);
  // Every header that is taken is closed again; a source's own lines may say anything.
  if (text && (!text->starts_with("#line 1 \"m\"\n") || !text->ends_with('\n'))) std::abort();
  if (!text && text.error().message.empty()) std::abort();
  return 0;
}
