#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "specializer/include_macros.hpp"
#include "specializer/include_scan.hpp"
#include "tests/fuzz/target.hpp"

// The input is a source: its includes, and what its own macros make of those by a macro.
BROACH_FUZZ_TARGET(include_scan) {
  using namespace broach::specializer;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto lines = static_cast<std::size_t>(std::count(source.begin(), source.end(), '\n')) + 1;
  IncludeMacros macros;
  macros.add(source);
  std::size_t done = 0;
  for (const IncludeDirective& directive : scan_includes(source)) {
    // Each can be respelt in its place.
    if (directive.begin < done || directive.end <= directive.begin) std::abort();
    if (directive.end > size || directive.line == 0 || directive.line > lines) std::abort();
    if (std::string_view("#%?").find(source[directive.begin]) == std::string_view::npos) {
      std::abort();
    }
    done = directive.end;
    if (directive.include.form != Include::Form::kComputed) continue;
    if (macros.expansions(directive.include.name).size() > IncludeMacros::kMaxExpansions) {
      std::abort();
    }
  }
  return 0;
}
