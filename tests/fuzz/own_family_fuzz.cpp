#include <cstdlib>

#include "specializer/own/description.hpp"
#include "specializer/own/names.hpp"
#include "tests/fuzz/target.hpp"

// A family file as anybody may have written it: what is read fits the bounds that later steps rely
// on.
BROACH_FUZZ_TARGET(own_family) {
  using namespace broach::specializer::own;
  const auto text = broach::fuzz::as_text(data, size);
  const auto read = read_description("fuzz.json", text);
  if (!read) {
    if (read.error().message.empty()) std::abort();
    return 0;
  }
  if (!is_family_name(read->name) || read->sources.empty() || read->functions.empty()) std::abort();
  for (const std::string& source : read->sources) {
    if (!source_name_fault(source).empty()) std::abort();
  }
  for (const Parameter& parameter : read->parameters) {
    if (!is_identifier(parameter.name)) std::abort();
    if (parameter.is_choice() && parameter.default_value >= parameter.values.size()) std::abort();
  }
  for (const Function& function : read->functions) {
    if (!is_identifier(function.name)) std::abort();
  }
  return 0;
}
