#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "specializer/include_scan.hpp"

namespace broach::specializer {

/// Finds what an include by a macro can come to (`#include HEADER`): each `#define` of the macro
/// in any file counts, whatever condition it stands under. Macros without parameters only, whose
/// name has an upper-case letter or begins with an underscore.
///
/// Threads: one at a time.
class IncludeMacros {
 public:
  /// Adds a file that may define macros; the bytes outlive this object.
  void add(std::string_view bytes) { files_.push_back(bytes); }

  /// The includes that the text behind `#include` can come to, in no order; at most kMaxExpansions.
  std::vector<Include> expansions(std::string_view text);

  static constexpr std::size_t kMaxExpansions = 64;

 private:
  struct Definitions {
    std::size_t files_read = 0;
    std::vector<std::string> bodies;
  };

  const std::vector<std::string>& definitions_of(const std::string& name);
  void expand(std::string text, std::size_t from, int depth, std::vector<std::string>& out);

  std::vector<std::string_view> files_;
  std::map<std::string, Definitions, std::less<>> known_;
  int steps_left_ = 0;  ///< Of one expansion: macros that stand for each other have no end.
};

}  // namespace broach::specializer
