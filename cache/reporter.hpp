#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "cache/cache.hpp"

namespace broach::cache {

/// Counts what happens in a cache and tells each cause once.
///
/// Threads: any. A notice is given outside the lock.
class Reporter {
 public:
  explicit Reporter(Notice notice) : notice_(std::move(notice)) {}

  void count(std::string_view event) noexcept;

  /// Counts `event` and `event_enospc` (the error's detail, else its reason), and tells the error
  /// once a cause.
  void fault(std::string_view event, const Error& error, std::string_view consequence) noexcept;

  void tell_once(std::string_view cause, std::string_view line) noexcept;

  Counters counters() const;

 private:
  mutable std::mutex mutex_;
  Counters counters_;
  std::set<std::string, std::less<>> told_;
  Notice notice_;
};

}  // namespace broach::cache
