#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "specializer/window_rows/shape.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/support/window_rows_shape.hpp"

namespace {

using namespace broach;

void check_same(const Result<WindowRowsShape>& again, const WindowRowsShape& shape) {
  if (!again || !(*again == shape)) std::abort();
}

// A shape reads back from its JSON and from its words, whatever it was read from.
void check_round_trips(const WindowRowsShape& shape) {
  check_same(test::window_rows_from_json(specializer::to_json(shape)), shape);
  std::vector<std::string> words;
  for (const auto& parameter : specializer::parameters(shape)) {
    words.push_back(parameter.name + "=" + parameter.value);
  }
  check_same(test::parse_window_rows(words), shape);
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

// A shape as a row of the miss journal or a manifest has it (JSON), and as a command line has it.
BROACH_FUZZ_TARGET(shape) {
  const std::string_view text = fuzz::as_text(data, size);
  // What is no object is not a shape in JSON: target `json` reads all else.
  const auto shape = text.starts_with('{') ? test::window_rows_from_json(text)
                                           : test::parse_window_rows(split(text));
  if (shape) check_round_trips(*shape);
  return 0;
}
