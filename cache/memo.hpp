#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "broach/result.hpp"
#include "cache/directory.hpp"

namespace broach::cache {

/// Small facts, a file each: a key may depend on one, and no look-up may wait for a database.
/// Bounded: the oldest go first.
///
/// Threads: any.
/// Source:  docs/cache_format.md.
class Memos {
 public:
  Memos(Directory& directory, std::string folder)
      : directory_(directory), folder_(std::move(folder)) {}

  /// Absent when it is missing, damaged, or another's.
  std::optional<std::string> find(std::string_view name);

  /// Errors:  the operating system's.
  Result<void> remember(std::string_view name, std::string_view value);

  void forget(std::string_view name);

 private:
  Directory& directory_;
  std::string folder_;
};

}  // namespace broach::cache
