#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// An include as a message spells it.
std::string spelt(const Include& include);

/// Where an include stands in a source.
struct IncludeDirective {
  enum class Keyword : std::uint8_t { kInclude, kIncludeNext, kImport, kEmbed };

  Include include;
  Keyword keyword = Keyword::kInclude;
  std::size_t line = 0;   ///< From 1.
  std::size_t begin = 0;  ///< Of the directive's `#`, in bytes.
  std::size_t end = 0;    ///< Past the name's closing mark; of a computed one, past the keyword.
  bool live = true;       ///< False within a comment or a raw string of several lines.

  friend bool operator==(const IncludeDirective&, const IncludeDirective&) = default;
};

/// What a source includes, in order of appearance, however the directive is spelt: digraphs,
/// comments and spliced lines included, `import`, `include_next` and `embed` too.
///
/// Conditional sections count: a file may be listed that one compiler skips.
std::vector<IncludeDirective> scan_includes(std::string_view source);

}  // namespace broach::specializer
