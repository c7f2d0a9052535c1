#include "cache/state.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/core.h>

#include "cache/failure.hpp"
#include "cache/file.hpp"
#include "cache/turn.hpp"

namespace broach::cache {
namespace {

constexpr std::uint64_t kMemoryBudgetBytes = std::uint64_t{512} << 20;
constexpr std::uint64_t kDefaultByteBudget = std::uint64_t{8} << 30;
constexpr std::uint64_t kDefaultObjectBudget = 200'000;
// Promotions are written, and synced, as the cache closes: a close must not take long.
constexpr std::size_t kMaxPromotions = 64;
constexpr std::size_t kMaxUses = 65'536;
// Without an index that has counted, a budget is checked by listing the store: not at every
// publish.
constexpr std::uint64_t kListEvery = 64;
// A publish brings an index in line with so many objects; more are left to a listing or an
// eviction.
constexpr std::size_t kMostToIndex = 4096;

std::string_view hit_event(LayerKind kind) {
  switch (kind) {
    case LayerKind::kMemory:
      return "hit_memory";
    case LayerKind::kUser:
      return "hit_user";
    case LayerKind::kReadOnly:
      return "hit_read_only";
    case LayerKind::kRemote:
      return "hit_remote";
  }
  return "hit";
}

Timing look_up_timing(LayerKind kind) noexcept {
  switch (kind) {
    case LayerKind::kMemory:
      return Timing::kLookUpMemory;
    case LayerKind::kUser:
      return Timing::kLookUpUser;
    case LayerKind::kReadOnly:
      return Timing::kLookUpReadOnly;
    case LayerKind::kRemote:
      return Timing::kLookUpRemote;
  }
  return Timing::kLookUpMiss;
}

// Errors that will not pass: writing is given up, as against "do not store this one".
bool forbids_writing(const Error& error) {
  return error.code == ErrorCode::kDenied || error.reason == Reason::kReadOnlyFileSystem;
}

}  // namespace

Cache::State::State(CacheOptions opened_with)
    : options(std::move(opened_with)),
      budget{options.byte_budget == 0 ? kDefaultByteBudget : options.byte_budget,
             options.object_budget == 0 ? kDefaultObjectBudget : options.object_budget},
      reporter(options.notice),
      memory(kMemoryBudgetBytes),
      owner(getpid()) {}

std::vector<DiskLayer*> Cache::State::disk_layers() {
  std::vector<DiskLayer*> layers;
  if (user != nullptr) layers.push_back(user.get());
  for (const auto& layer : read_only) layers.push_back(layer.get());
  return layers;
}

bool Cache::State::distrusted(const Key& key) {
  const std::lock_guard lock(mutex);
  return distrusted_keys.contains(key);
}

std::optional<Hit> Cache::State::look_up(const KeyRecord& key) {
  std::optional<Hit> hit;
  if (auto object = memory.find(key)) {
    hit = Hit{std::move(object), {LayerKind::kMemory, "memory"}};
  }
  for (DiskLayer* layer : disk_layers()) {
    if (hit) break;
    // A binary that a driver refused is not taken from a layer that cannot set it aside.
    if (layer != user.get() && distrusted(key.key)) continue;
    if (auto object = layer->source().find(key)) {
      hit = Hit{memory.insert(std::move(*object)), layer->layer};
    }
  }
  if (!hit) return std::nullopt;
  reporter.count(hit_event(hit->layer.kind));
  const std::lock_guard lock(mutex);
  if (uses.size() < kMaxUses || uses.contains(key.key)) {
    Use& use = uses[key.key];
    ++use.hits;
    use.last_unix_ms = now_unix_ms();
  }
  if (hit->layer.kind == LayerKind::kReadOnly && promotions.size() < kMaxPromotions) {
    promotions.insert(key.key);
  }
  return hit;
}

std::optional<Hit> Cache::State::look_up_timed(const KeyRecord& key) {
  const Stopwatch watch;
  auto hit = look_up(key);
  metrics.record(hit ? look_up_timing(hit->layer.kind) : Timing::kLookUpMiss, watch.elapsed());
  if (!hit) reporter.count("miss");
  return hit;
}

std::optional<Hit> Cache::State::find_remote(const KeyRecord& key) {
  if (!remotes || distrusted(key.key)) return std::nullopt;
  const Stopwatch watch;
  auto found = remotes->find(key);
  metrics.record(found ? Timing::kLookUpRemote : Timing::kLookUpRemoteMiss, watch.elapsed());
  if (!found) return std::nullopt;
  reporter.count(hit_event(LayerKind::kRemote));
  if (store(found->object)) {
    reporter.count("backfilled");
    index_stored(found->object);
  }
  return Hit{memory.insert(std::move(found->object)), std::move(found->layer)};
}

bool Cache::State::store(const Object& object) {
  if (!can_write()) return false;
  sweep_once();
  const Stopwatch watch;
  const auto stored = user->store.put(object.key.key, encode(object));
  metrics.record(stored ? Timing::kPublishStored : Timing::kPublishNotStored, watch.elapsed());
  if (stored) {
    reporter.count("published");
    return true;
  }
  const bool forbidden = forbids_writing(stored.error());
  if (forbidden) user->writable = false;
  reporter.fault("store_failed", stored.error(),
                 forbidden ? "from now on binaries are kept in memory only"
                           : "this binary is kept in memory only");
  return false;
}

void Cache::State::sweep_once() {
  if (stores++ != 0) return;
  for (std::size_t removed = user->store.sweep(); removed > 0; --removed) {
    reporter.count("swept_temporary");
  }
}

void Cache::State::index_stored(const Object& object) {
  IndexedObject row;
  row.head = {object.key, object.description, object.provenance, object.limits, {}};
  row.used_unix_ms = now_unix_ms();
  const auto head = user->store.read_head(object.key.key);
  if (!head) return;  // Evicted or replaced already: the next listing knows.
  row.bytes = head->header.file_bytes;
  row.payload_digest = head->header.payload_digest;
  (void)user->index.record(std::span(&row, 1));
  keep_budget();
}

std::optional<Error> Cache::State::remembered_failure(const Key& key, const MakeTerms& terms,
                                                      std::int64_t since_unix_ms) {
  const std::int64_t now = now_unix_ms();
  const auto found = failure(key);
  if (!found || found->limits != terms.limits) return std::nullopt;
  const bool tries_again = terms.remembered == MakeTerms::Remembered::kIsTriedAgain;
  if (tries_again && found->created_unix_ms < since_unix_ms) return std::nullopt;
  Error error = found->error;
  error.message +=
      fmt::format(" (remembered from {} s ago; tried again in {} s)",
                  (now - found->created_unix_ms) / 1000, (found->expires_unix_ms - now) / 1000);
  return error;
}

std::optional<Failure> Cache::State::failure(const Key& key) {
  const std::int64_t now = now_unix_ms();
  auto own = records.failure(key, now);
  if (own || user == nullptr) return own;
  const auto text = user->failures.find(key.hex());
  auto found = text ? failure_from(key, *text) : std::nullopt;
  if (found && !still_counts(*found, now)) found.reset();
  return found;
}

void Cache::State::remember(const Failure& failure) {
  records.remember(failure);
  if (!can_write()) return;
  if (!user->failures.remember(failure.key.hex(), to_text(failure))) reporter.count("memo_failed");
  (void)user->index.remember(failure);
}

// A failure that another attempt cannot mend soon is remembered: the compiler's verdict for an
// hour, its death or its running out of time for ten minutes. The machine's troubles are not.
void Cache::State::remember_maker_failure(const KeyRecord& key, const Error& error,
                                          const MakeTerms& terms) {
  if (error.reason == Reason::kMachine) return;
  constexpr std::int64_t kMinuteMs = 60'000;
  std::int64_t keep_ms = 0;
  if (error.code == ErrorCode::kCompileFailed) keep_ms = 60 * kMinuteMs;
  if (error.code == ErrorCode::kCompilerDied || error.code == ErrorCode::kTimedOut) {
    keep_ms = 10 * kMinuteMs;
  }
  if (keep_ms == 0) return;
  Failure failure;
  failure.key = key.key;
  failure.error = error;
  failure.limits = terms.limits;
  failure.created_unix_ms = now_unix_ms();
  failure.expires_unix_ms = failure.created_unix_ms + keep_ms;
  if (const auto fields = fields_of(key.stream)) {
    for (const KeyField& field : *fields) {
      if (field.label == "target") failure.target = field.value;
      if (field.label == "compiler") failure.compiler = field.value;
    }
  }
  reporter.count("failure_remembered");
  remember(failure);
}

// The holder may itself wait for the fleet, twice a compile, before its own.
Turn::Patience Cache::State::patience() const {
  Turn::Patience patience;
  const std::chrono::seconds compile = compile_limit(options);
  patience.stage = 2 * compile;
  patience.whole = 4 * compile;
  return patience;
}

Result<Hit> Cache::State::make(const KeyRecord& key, const Maker& maker, const MakeTerms& terms) {
  const std::int64_t since = now_unix_ms();
  if (auto failure = remembered_failure(key.key, terms, since)) {
    reporter.count("failure_served");
    return std::move(*failure);
  }
  std::optional<Hit> found;
  std::optional<Turn> turn;
  if (can_write()) {
    const Stopwatch watch;
    turn.emplace(Turn::take(
        *user->directory, key.key, reporter,
        [&] { return called_off || (found = look_up(key)).has_value(); }, patience()));
    if (turn->waited()) metrics.record(Timing::kWaitProcess, watch.elapsed());
  } else {
    // A thread that led before this one may have made it.
    found = look_up(key);
  }
  if (found) return std::move(*found);
  if (called_off) return Error{ErrorCode::kIo, "the wait for a binary was called off", ""};
  // Whoever held the lock before may have failed.
  if (auto failure = remembered_failure(key.key, terms, since)) {
    reporter.count("failure_served");
    return std::move(*failure);
  }
  remote::Tier::Turn fleet_turn;
  const auto stage = [&](std::string_view name) {
    if (turn) turn->stage(name);
    fleet_turn.stage(name);
  };
  if (remotes) {
    stage("remote");
    if ((found = find_remote(key))) return std::move(*found);
    const Stopwatch watch;
    fleet_turn = remotes->take_turn(
        key, [&] { return called_off || (found = find_remote(key)).has_value(); },
        [&](std::string_view name) {
          if (turn) turn->stage(name);
        });
    if (called_off) return Error{ErrorCode::kIo, "the wait for a binary was called off", ""};
    if (fleet_turn.served()) {
      metrics.record(Timing::kWaitFleet, watch.elapsed());
      return std::move(*found);
    }
  }
  reporter.count("made");
  auto object = maker(stage);
  if (!object) {
    remember_maker_failure(key, object.error(), terms);
    return object.error();
  }
  if (object->key != key) {
    return Error{ErrorCode::kInternal,
                 "the maker of " + key.key.hex() + " returned " + object->key.key.hex(), ""};
  }
  stage("publish");
  const bool stored = store(*object);
  if (turn && !stored) turn->not_stored();
  turn.reset();  // Those who wait need the object only, not its row in the index.
  fleet_turn.upload(*object);
  if (stored) index_stored(*object);
  return Hit{memory.insert(std::move(*object)), {LayerKind::kMemory, "memory"}};
}

void Cache::State::flush() {
  if (!can_write() || owner != getpid()) return;
  std::map<Key, Use> noted;  // In the order of the index.
  std::set<Key> promoted;
  {
    const std::lock_guard lock(mutex);
    noted.insert(uses.begin(), uses.end());
    uses.clear();
    promoted.swap(promotions);
  }
  for (const Key& key : promoted) {
    const auto object = memory.find(key);
    if (object == nullptr || !store(*object)) continue;
    reporter.count("promoted");
    index_stored(*object);
  }
  if (noted.empty()) return;
  if (!user->index.add_uses(noted)) reporter.count("uses_lost");
}

std::optional<Usage> Cache::State::usage() {
  const auto counted = user->index.usage();
  if (counted && *counted) return **counted;
  if (stores % kListEvery != 1) return std::nullopt;
  const auto stored = user->store.list();
  if (!stored) return std::nullopt;
  // An index that was made anew knows nothing of what was there before it.
  if (counted && stored->size() <= kMostToIndex) (void)reconcile(user->index, user->store);
  Usage usage;
  usage.objects = stored->size();
  for (const StoredObject& object : *stored) usage.bytes += object.bytes;
  return usage;
}

Budget Cache::State::budget_now(const Usage& used) {
  const auto root = user->directory->root(IfMissing::kFail);
  return root ? within_free_space(budget, used, free_space_of((*root)->get())) : budget;
}

}  // namespace broach::cache
