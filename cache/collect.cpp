// Eviction: what goes when the budget is passed, or by name.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "cache/file.hpp"
#include "cache/file_lock.hpp"
#include "cache/state.hpp"
#include "cache/turn.hpp"

namespace broach::cache {
namespace {

constexpr std::string_view kLocks = "locks";

// Eviction goes below the budget by a tenth, so that the next publish need not evict again.
constexpr std::uint64_t kSlack = 10;

// Evicting what was used within the hour means that the budget is smaller than the work.
constexpr std::int64_t kThrashMs = std::int64_t{3600} * 1000;

std::vector<Entry> candidates(Cache::State& state, std::vector<Entry> entries,
                              const GcRequest& request) {
  if (!request.keys.empty()) {
    std::erase_if(entries, [&](const Entry& entry) {
      return std::find(request.keys.begin(), request.keys.end(), entry.key) == request.keys.end();
    });
    return entries;
  }
  sort_by_eviction(entries, now_unix_ms());
  Usage used;
  used.objects = entries.size();
  for (const Entry& entry : entries) used.bytes += entry.bytes;
  const Budget now = entries.empty() ? state.budget : state.budget_now(used);
  const Budget budget{request.byte_budget.value_or(now.bytes),
                      request.object_budget.value_or(now.objects)};
  entries.resize(count_to_evict(entries, budget));
  return entries;
}

void sweep(Cache::State& state) {
  const auto locks = state.user->directory->folder(kLocks, IfMissing::kFail);
  std::size_t removed = state.user->store.sweep();
  if (locks) {
    removed += sweep_locks((*locks)->get(), (state.user->directory->path() / kLocks).string());
  }
  for (; removed > 0; --removed) state.reporter.count("swept");
}

}  // namespace

Result<GcReport> collect(Cache::State& state, const GcRequest& request) {
  const bool remove = request.mode == GcRequest::Mode::kRemove;
  if (remove && state.can_write()) sweep(state);
  auto listed = state.user ? list_entries(*state.user, &state.user->index)
                           : Result<std::vector<Entry>>(std::vector<Entry>{});
  if (!listed) return listed.error();
  GcReport report;
  for (const Entry& entry : *listed) report.bytes_left += entry.bytes;
  report.objects_left = listed->size();

  std::vector<Key> gone;
  for (Entry& victim : candidates(state, *listed, request)) {
    // Whoever makes a key is about to store it again.
    if (request.keys.empty() && holder_of(*state.user->directory, victim.key)) continue;
    if (remove) {
      const auto removed = state.user->store.remove(victim.key);
      if (!removed) {
        state.reporter.fault("evict_failed", removed.error(), "the object stays");
        continue;
      }
      state.reporter.count("evicted");
      gone.push_back(victim.key);
    }
    report.bytes_left -= victim.bytes;
    --report.objects_left;
    report.bytes_removed += victim.bytes;
    report.removed.push_back(std::move(victim));
  }
  if (remove) {
    for (const Key& key : request.keys) state.memory.erase(key);
    if (!gone.empty()) (void)state.user->index.forget(gone);
  }
  return report;
}

void Cache::State::keep_budget() {
  const auto used = usage();
  if (!used) return;
  const Budget allowed = budget_now(*used);
  if (used->bytes <= allowed.bytes && used->objects <= allowed.objects) return;

  const auto locks = user->directory->folder(kLocks, IfMissing::kCreate);
  if (!locks) return;
  const auto turn = FileLock::try_take((*locks)->get(), "gc");
  if (!turn || !turn->has_value()) return;  // Another process is at it.
  GcRequest request;
  request.byte_budget = allowed.bytes - allowed.bytes / kSlack;
  request.object_budget = allowed.objects - allowed.objects / kSlack;
  request.mode = GcRequest::Mode::kRemove;
  const auto report = collect(*this, request);
  if (!report) return;
  const std::int64_t now = now_unix_ms();
  const bool thrashes =
      std::any_of(report->removed.begin(), report->removed.end(),
                  [&](const Entry& entry) { return now - entry.last_used_unix_ms < kThrashMs; });
  if (!thrashes) return;
  reporter.count("budget_thrashed");
  const bool tight = allowed.bytes < budget.bytes || allowed.objects < budget.objects;
  reporter.tell_once("budget_thrashed",
                     fmt::format("the budget of {} ({} bytes, {} objects{}) is too small: objects "
                                 "used within the hour were evicted; {}",
                                 user->directory->path().string(), allowed.bytes, allowed.objects,
                                 tight ? ", which its file system's free space bounds" : "",
                                 tight ? "free some or name another directory (BROACH_CACHE_DIR)"
                                       : "raise BROACH_CACHE_BYTES or BROACH_CACHE_OBJECTS"));
}

}  // namespace broach::cache
