#include "cache/records.hpp"

#include <algorithm>

namespace broach::cache {
namespace {

constexpr std::size_t kMaxRows = 4096;

// Replaces the row that `same` finds, else appends, dropping the oldest of a full table.
template <class Row, class Same>
void upsert(std::vector<Row>& rows, const Row& row, Same same) {
  const auto old = std::find_if(rows.begin(), rows.end(), same);
  if (old != rows.end()) rows.erase(old);
  if (rows.size() >= kMaxRows) rows.erase(rows.begin());
  rows.push_back(row);
}

template <class Row>
std::vector<Row> of_key(const std::vector<Row>& rows, const Key& key) {
  std::vector<Row> found;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(found),
               [&](const Row& row) { return row.key == key; });
  return found;
}

}  // namespace

bool still_counts(const Failure& failure, std::int64_t now_ms) noexcept {
  return failure.created_unix_ms <= now_ms && now_ms < failure.expires_unix_ms;
}

void Records::remember(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (failures_.size() >= kMaxRows && !failures_.contains(failure.key)) {
    failures_.erase(std::min_element(failures_.begin(), failures_.end(), [](auto& a, auto& b) {
      return a.second.created_unix_ms < b.second.created_unix_ms;
    }));
  }
  failures_.insert_or_assign(failure.key, failure);
}

void Records::forget_failure(const Key& key) {
  const std::lock_guard lock(mutex_);
  failures_.erase(key);
}

std::optional<Failure> Records::failure(const Key& key, std::int64_t now_ms) const {
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(key);
  if (found == failures_.end() || !still_counts(found->second, now_ms)) return std::nullopt;
  return found->second;
}

std::vector<Failure> Records::failures(std::int64_t now_ms) const {
  const std::lock_guard lock(mutex_);
  std::vector<Failure> rows;
  for (const auto& [key, failure] : failures_) {
    if (still_counts(failure, now_ms)) rows.push_back(failure);
  }
  return rows;
}

void Records::record(const DeviceLimits& limits) {
  const std::lock_guard lock(mutex_);
  upsert(device_limits_, limits, [&](const DeviceLimits& row) {
    return row.key == limits.key && row.device == limits.device && row.driver == limits.driver &&
           row.limits.function == limits.limits.function;
  });
}

std::vector<DeviceLimits> Records::device_limits(const Key& key) const {
  const std::lock_guard lock(mutex_);
  return of_key(device_limits_, key);
}

void Records::record(const Receipt& receipt) {
  const std::lock_guard lock(mutex_);
  upsert(receipts_, receipt, [&](const Receipt& row) {
    return row.key == receipt.key && row.device == receipt.device && row.driver == receipt.driver &&
           row.broach_version == receipt.broach_version;
  });
}

std::vector<Receipt> Records::receipts(const Key& key) const {
  const std::lock_guard lock(mutex_);
  return of_key(receipts_, key);
}

void Records::record(const JournalRow& row) {
  const std::lock_guard lock(mutex_);
  const Shape shape(row.family, row.shape_json, row.target);
  if (journal_.size() >= kMaxRows && !journal_.contains(shape)) {
    journal_.erase(std::min_element(journal_.begin(), journal_.end(), [](auto& a, auto& b) {
      return a.second.last_unix_ms < b.second.last_unix_ms;
    }));
  }
  JournalRow& kept =
      journal_.try_emplace(shape, JournalRow{row.family, row.shape_json, row.target, 0, 0})
          .first->second;
  kept.count += std::max<std::uint64_t>(row.count, 1);
  kept.last_unix_ms = std::max(kept.last_unix_ms, row.last_unix_ms);
}

std::vector<JournalRow> Records::journal() const {
  const std::lock_guard lock(mutex_);
  std::vector<JournalRow> rows;
  for (const auto& [shape, row] : journal_) rows.push_back(row);
  return rows;
}

void Records::clear_journal() {
  const std::lock_guard lock(mutex_);
  journal_.clear();
}

void Records::forget_miss(const JournalRow& row) {
  const std::lock_guard lock(mutex_);
  journal_.erase(Shape(row.family, row.shape_json, row.target));
}

std::optional<std::string> Records::memo(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = memos_.find(name);
  if (found == memos_.end()) return std::nullopt;
  return found->second;
}

void Records::remember_memo(std::string_view name, std::string_view value) {
  const std::lock_guard lock(mutex_);
  if (memos_.size() >= kMaxRows && !memos_.contains(name)) memos_.erase(memos_.begin());
  memos_.insert_or_assign(std::string(name), std::string(value));
}

}  // namespace broach::cache
