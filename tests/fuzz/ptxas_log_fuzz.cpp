#include <cstdlib>
#include <string>

#include "specializer/limits/ptxas_log.hpp"
#include "tests/fuzz/target.hpp"

BROACH_FUZZ_TARGET(ptxas_log) {
  using namespace broach;
  const std::string_view log = fuzz::as_text(data, size);
  const auto found = specializer::ptxas_properties(log, "spill");
  // What a report says must stand in the log in digits.
  if (found && log.find(std::to_string(found->stack_bytes)) == std::string_view::npos) std::abort();
  return 0;
}
