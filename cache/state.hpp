#pragma once

#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/cache.hpp"
#include "cache/eviction.hpp"
#include "cache/flight.hpp"
#include "cache/index.hpp"
#include "cache/key_hash.hpp"
#include "cache/layers.hpp"
#include "cache/memory.hpp"
#include "cache/metrics.hpp"
#include "cache/records.hpp"
#include "cache/remote/tier.hpp"
#include "cache/reporter.hpp"
#include "cache/store.hpp"
#include "cache/trusted_keys.hpp"
#include "cache/turn.hpp"

namespace broach::cache {

/// What a Cache is made of.
struct Cache::State {
  explicit State(CacheOptions opened_with);

  void open_layers();
  void open_user_layers();
  void open_read_only_layers();
  void open_remotes();
  Result<std::unique_ptr<DiskLayer>> open_read_only_layer(const std::filesystem::path& path);
  Result<std::unique_ptr<DiskLayer>> open_read_only_directory(const std::filesystem::path& path);
  void refuse(Layer layer, const Error& error);

  /// Looks in every layer without counting a miss; a hit is counted, promoted and noted as a use.
  std::optional<Hit> look_up(const KeyRecord& key);

  /// The same for a caller's own request: timed, and a miss is counted.
  std::optional<Hit> look_up_timed(const KeyRecord& key);

  /// Asks the remotes; a hit is counted and stored in the user's directory.
  std::optional<Hit> find_remote(const KeyRecord& key);

  /// Stores an object in the user's directory; says whether it is there now.
  bool store(const Object& object);

  /// Tells the index of an object that was stored, and keeps the budget.
  void index_stored(const Object& object);

  /// The maker's turn: waits for other processes, makes, stores, indexes.
  Result<Hit> make(const KeyRecord& key, const Maker& maker, const MakeTerms& terms);

  std::optional<Failure> failure(const Key& key);
  /// The failure that stands in the way of making a key: not one from under other limits, nor one
  /// from before `since` where the caller tries again.
  std::optional<Error> remembered_failure(const Key& key, const MakeTerms& terms,
                                          std::int64_t since_unix_ms);
  void remember(const Failure& failure);
  void remember_maker_failure(const KeyRecord& key, const Error& error, const MakeTerms& terms);

  void flush();
  void sweep_once();
  void keep_budget();
  /// The budget that holds now: less than the cache's own on a file system that is nearly full.
  Budget budget_now(const Usage& used);
  /// What the user's directory holds: by its index, or by listing it. Absent where neither tells,
  /// or a listing would come too often.
  std::optional<Usage> usage();

  /// Every directory and bundle, the writable one first.
  std::vector<DiskLayer*> disk_layers();

  /// The keys whose signatures count, read when they are first asked for.
  const TrustedKeys& trusted_keys();

  /// How long this process waits for another's compile.
  Turn::Patience patience() const;

  bool can_write() { return user && user->writable; }
  bool distrusted(const Key& key);

  CacheOptions options;
  Budget budget;
  Reporter reporter;
  Metrics metrics;
  MemoryLayer memory;
  Records records;
  Flights flights;
  std::unique_ptr<UserLayer> user;  ///< Null: memory only.
  std::vector<std::unique_ptr<DiskLayer>> read_only;
  std::vector<LayerStatus> refused;  ///< Candidates that cannot be used, with the reason.
  remote::TierHandle remotes;        ///< Null: none is named.

  std::once_flag keys_read;
  TrustedKeys keys;

  std::atomic<std::uint64_t> stores{0};  ///< Tried by this process.
  pid_t owner = 0;                       ///< The process that opened the cache.
  std::atomic<bool> called_off = false;  ///< No call waits for other processes any more.

  std::mutex mutex;  ///< Guards what follows.
  std::set<Key> distrusted_keys;
  std::unordered_map<Key, Use, KeyHash> uses;  ///< Not yet in the index.
  std::set<Key> promotions;  ///< Served by a read-only layer, not yet in the user's directory.
};

/// Brings the index in line with the objects: adds, drops and dates rows.
Result<void> reconcile(Index& index, ObjectSource& source);

/// The rows of `entries`, layer by layer.
Result<std::vector<Entry>> list_entries(Cache::State& state);
Result<std::vector<Entry>> list_entries(DiskLayer& layer, Index* index);
/// Every entry of the layers that a name says: a path, "memory", "user" or "read_only".
Result<std::vector<Entry>> list_entries_of(Cache::State& state, std::string_view name);
Result<std::vector<EntryLimits>> list_limits(Cache::State& state);

/// Removes (or reports) what the request says from the user's directory and memory.
Result<GcReport> collect(Cache::State& state, const GcRequest& request);

}  // namespace broach::cache
