#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "kernel_src/embedded.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

/// One include of a source.
struct Include {
  enum class Form : std::uint8_t {
    kQuoted,    ///< "name"
    kAngle,     ///< <name>
    kComputed,  ///< Anything else, such as a macro: `name` is the rest of the line.
  };
  Form form = Form::kQuoted;
  std::string name;

  friend bool operator==(const Include&, const Include&) = default;
};

/// What a source includes, in order of appearance, however the directive is spelt: digraphs,
/// comments and spliced lines included, `import`, `include_next` and `embed` too.
///
/// Conditional sections and comments of several lines count too: a file may be listed that one
/// compiler skips.
std::vector<Include> includes_of(std::string_view source);

/// A main source and every embedded file it includes, however indirectly: the main source first,
/// then the others by name.
///
/// Files under `host/` belong to the host target alone and are left out of other vendors' plans,
/// so that a change of the host shim leaves GPU binaries alone.
///
/// Errors:  kInternal naming the file that includes and what it includes, where that is not an
///          embedded file by its full name in quotes. No compiler is told where other headers lie,
///          and a key would not see them.
Result<std::vector<SourceFile>> close_over_includes(std::string_view main_name,
                                                    std::string main_source, Vendor vendor,
                                                    std::span<const EmbeddedFile> embedded);

}  // namespace broach::specializer
