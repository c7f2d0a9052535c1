#include "cache/eviction.hpp"

#include <algorithm>

namespace broach::cache {
namespace {

// What stays free for others on a file system that fills up.
constexpr std::uint64_t kReserveShare = 20;
constexpr std::uint64_t kMostReservedBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostReservedFiles = 4096;

// What keeping an entry costs for what it saves. A use in the future (a clock that was set back)
// counts as now; a compile whose time is not known (a bundle's objects) counts as a second.
double cost_of_keeping(const Entry& entry, std::int64_t now_ms) {
  const auto unused_ms = std::max<std::int64_t>(now_ms - entry.last_used_unix_ms, 0) + 1;
  const double saved_ms = entry.compile_ms == 0 ? 1000.0 : entry.compile_ms;
  return static_cast<double>(entry.bytes) * static_cast<double>(unused_ms) / saved_ms;
}

// What may be used in all, so that a reserve stays free.
std::uint64_t allowed(std::uint64_t used, std::uint64_t free, std::uint64_t total,
                      std::uint64_t most_reserved) {
  const std::uint64_t reserve = std::min(total / kReserveShare, most_reserved);
  return used + free - std::min(used + free, reserve);
}

}  // namespace

Budget within_free_space(const Budget& budget, const Usage& used, const FreeSpace& space) {
  Budget fitting = budget;
  if (space.total_bytes > 0) {
    fitting.bytes = std::min(
        fitting.bytes, allowed(used.bytes, space.bytes, space.total_bytes, kMostReservedBytes));
  }
  if (space.total_files > 0) {
    fitting.objects = std::min(
        fitting.objects, allowed(used.objects, space.files, space.total_files, kMostReservedFiles));
  }
  return fitting;
}

void sort_by_eviction(std::vector<Entry>& entries, std::int64_t now_ms) {
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    const double cost_a = cost_of_keeping(a, now_ms);
    const double cost_b = cost_of_keeping(b, now_ms);
    return cost_a != cost_b ? cost_a > cost_b : a.key < b.key;
  });
}

std::size_t count_to_evict(const std::vector<Entry>& sorted, const Budget& budget) {
  std::uint64_t bytes = 0;
  for (const Entry& entry : sorted) bytes += entry.bytes;
  std::uint64_t objects = sorted.size();
  std::size_t evicted = 0;
  while (evicted < sorted.size() && (bytes > budget.bytes || objects > budget.objects)) {
    bytes -= sorted[evicted].bytes;
    --objects;
    ++evicted;
  }
  return evicted;
}

}  // namespace broach::cache
