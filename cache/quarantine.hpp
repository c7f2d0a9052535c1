#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "cache/cache.hpp"
#include "cache/directory.hpp"

namespace broach::cache {

/// Damaged files, set aside with the reason for people to look at. Bounded: the oldest go first.
///
/// Threads: any.
class Quarantine {
 public:
  explicit Quarantine(Directory& directory) : directory_(directory) {}

  /// Moves a file (or link, or whatever is in its place) out of a folder.
  ///
  /// Errors:  the operating system's, when it could be neither moved nor removed.
  Result<void> take(int folder, const std::string& name, std::string_view why);

  Result<std::vector<QuarantineRow>> list();

 private:
  void trim(int folder);

  Directory& directory_;
};

}  // namespace broach::cache
