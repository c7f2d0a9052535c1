#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "cache/cache.hpp"

namespace broach::cache {

/// What this process has recorded beside its objects, kept so that nothing depends on a disk.
/// Bounded: a table that is full drops its oldest row.
///
/// Threads: any.
class Records {
 public:
  void remember(const Failure& failure);
  void forget_failure(const Key& key);
  std::optional<Failure> failure(const Key& key, std::int64_t now_ms) const;
  std::vector<Failure> failures(std::int64_t now_ms) const;

  void record(const DeviceLimits& limits);
  std::vector<DeviceLimits> device_limits(const Key& key) const;
  void record(const Receipt& receipt);
  std::vector<Receipt> receipts(const Key& key) const;

  void record(const JournalRow& row);
  std::vector<JournalRow> journal() const;
  void clear_journal();
  void forget_miss(const JournalRow& row);

  std::optional<std::string> memo(std::string_view name) const;
  void remember_memo(std::string_view name, std::string_view value);

 private:
  using Shape = std::tuple<std::string, std::string, std::string>;

  mutable std::mutex mutex_;
  std::map<Key, Failure> failures_;
  std::vector<DeviceLimits> device_limits_;
  std::vector<Receipt> receipts_;
  std::map<Shape, JournalRow> journal_;
  std::map<std::string, std::string, std::less<>> memos_;
};

/// A failure counts until it expires; one from the future (a clock that was set back) does not.
bool still_counts(const Failure& failure, std::int64_t now_ms) noexcept;

}  // namespace broach::cache
