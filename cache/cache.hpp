#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "cache/key.hpp"
#include "cache/object.hpp"
#include "cache/trusted_path.hpp"

namespace broach::cache {

/// Takes one line for people (no newline). Called at most once a cause.
using Notice = std::function<void(std::string_view)>;

enum class RemoteUse : std::uint8_t { kReadWrite, kReadOnly };

/// A store of signed objects on another machine.
///
/// Source:  docs/remote.md.
struct RemoteOptions {
  std::string url;     ///< redis://, rediss://, http:// or https://
  std::string secret;  ///< Redis: the password. HTTP: a bearer token; with a user, a password.
  std::filesystem::path secret_file;  ///< A file that holds it instead.
  std::string certificates;           ///< A PEM file of authorities; empty: the system's.
  RemoteUse use = RemoteUse::kReadWrite;
  std::chrono::milliseconds first_byte{0};  ///< A look-up waits no longer for it; 0: 200 ms.
};

class SecretKey;

/// What makes a bundle's bytes usable.
enum class BundleTrust : std::uint8_t {
  kSignature,  ///< A trusted key signed it. Who owns the file does not matter.
  kOwner,      ///< The caller vouches for it, and nobody but its owner could have changed it.
};

/// What the cache is opened with. Read no environment here: the caller fills it in.
///
/// Units:   budgets in bytes and objects; 0 takes the default (finite).
struct CacheOptions {
  std::vector<std::filesystem::path>
      directories;  ///< Candidates, the first usable one is writable.
  std::vector<std::filesystem::path>
      read_only;  ///< Directories and bundles, looked in after it, in order.
  BundleTrust bundle_trust = BundleTrust::kSignature;
  std::vector<std::filesystem::path> trusted_keys;  ///< Directories of public keys (*.pub).
  std::filesystem::path signing_key;                ///< A secret key's file; empty: none.
  Readers readers = Readers::kOwner;                ///< Of what the writable directory gets.
  /// What one compile may take at most; 0: 300 s. Waits for other makers are multiples of it.
  std::chrono::seconds compile_limit{0};
  std::uint64_t byte_budget = 0;
  std::uint64_t object_budget = 0;
  std::vector<RemoteOptions> remotes;         ///< Asked in order, after every directory.
  std::chrono::milliseconds upload_drain{0};  ///< How long closing waits for uploads; 0: 2 s.
  Notice notice;
};

/// What one compile may take, the default where the options name none.
inline std::chrono::seconds compile_limit(const CacheOptions& options) {
  constexpr std::chrono::seconds kDefault{300};
  return options.compile_limit.count() > 0 ? options.compile_limit : kDefault;
}

enum class LayerKind : std::uint8_t { kMemory, kUser, kReadOnly, kRemote };

/// Who served a hit.
struct Layer {
  LayerKind kind = LayerKind::kMemory;
  std::string name;  ///< The directory, the remote without its secrets, or "memory".
};

struct Hit {
  std::shared_ptr<const Object> object;
  Layer layer;
};

/// One layer as `doctor` shows it.
struct LayerStatus {
  Layer layer;
  bool usable = false;
  std::string why;         ///< Reason it is not used or not written; empty when all is well.
  std::string filesystem;  ///< "ext4", "nfs", "tmpfs"…
  std::string journal;     ///< SQLite's journal mode, or what there is instead of an index.
};

/// One remote as `doctor` shows it, just asked.
struct RemoteStatus {
  Layer layer;
  bool writable = false;
  bool leases = false;  ///< The fleet agrees here who makes a key.
  std::string why;      ///< Why it is not used, or only read.
  std::string breaker;  ///< "closed", "open", "probing"
  unsigned faults_in_a_row = 0;
  std::optional<std::chrono::microseconds> latency;  ///< Of one question; absent: no answer.
  std::string fault;                                 ///< Why there was none.
};

/// One row of the index.
struct Entry {
  Key key;
  Description description;
  std::uint64_t bytes = 0;
  std::uint32_t compile_ms = 0;
  std::int64_t created_unix_ms = 0;
  std::int64_t last_used_unix_ms = 0;
  std::uint64_t hits = 0;
  Layer layer;  ///< The first layer that holds it.
};

struct EntryLimits {
  Key key;
  Description description;
  LaunchLimits limits;
};

/// A compile that failed, remembered.
struct Failure {
  Key key;
  std::string target;
  std::string compiler;
  std::string limits;  ///< Under which it failed, as MakeTerms had them.
  Error error;
  std::int64_t created_unix_ms = 0;
  std::int64_t expires_unix_ms = 0;
};

/// A limit as a live device reported it.
struct DeviceLimits {
  Key key;
  std::string device;
  std::string driver;
  LaunchLimits limits;
};

/// What a contract run concluded about one binary on one device.
struct Receipt {
  Key key;
  std::string device;
  std::string driver;
  std::string gates_json;
  std::string broach_version;
  std::int64_t created_unix_ms = 0;
};

/// A shape that was asked for and missed.
struct JournalRow {
  std::string family;
  std::string shape_json;
  std::string target;
  std::uint64_t count = 0;
  std::int64_t last_unix_ms = 0;
};

struct VerifyReport {
  std::uint64_t objects = 0;
  std::uint64_t damaged = 0;
  std::uint64_t unread = 0;           ///< Layers and folders that could not be looked at.
  std::vector<std::string> findings;  ///< One line a damaged object, layer or folder.
};

struct GcRequest {
  std::optional<std::uint64_t> byte_budget;  ///< The cache's own where absent.
  std::optional<std::uint64_t> object_budget;
  std::vector<Key> keys;  ///< Remove exactly these instead of evicting.
  enum class Mode : std::uint8_t { kReport, kRemove } mode = Mode::kReport;
};

struct GcReport {
  std::vector<Entry> removed;  ///< Or what would be removed.
  std::uint64_t bytes_removed = 0;
  std::uint64_t bytes_left = 0;
  std::uint64_t objects_left = 0;
};

struct QuarantineRow {
  std::string name;  ///< File name in quarantine/.
  std::string why;
  std::uint64_t bytes = 0;
  std::int64_t created_unix_ms = 0;
};

/// Counted events, by cause.
struct Counters {
  std::map<std::string, std::uint64_t> values;  ///< "hit_memory", "quarantined", "index_rebuilt"…
  std::uint64_t operator[](std::string_view name) const;
};

/// Who is compiling a key that this process waits for.
struct Holder {
  std::int64_t pid = 0;
  std::string stage;
  double seconds = 0;
};

/// Lets a maker tell waiters how far it is ("compile", "limits", "publish").
using Stage = std::function<void(std::string_view)>;
using Maker = std::function<Result<Object>(const Stage&)>;

/// What the failure of a maker depends on besides the key.
struct MakeTerms {
  std::string limits;  ///< A failure that is remembered under other limits is none under these.
  /// Whether a failure remembered from before this call stands, or the maker tries again.
  enum class Remembered : std::uint8_t { kStands, kIsTriedAgain } remembered = Remembered::kStands;
};

class Metrics;

/// Binaries by key, in layers: process memory, the user's directory, read-only directories,
/// remotes.
///
/// No fault of the cache's storage fails a call that asks for a binary: it is counted, told once
/// through `notice`, and treated as a miss.
///
/// Threads: any.
/// Source:  docs/cache_format.md (files), docs/cache_key.md (keys).
class Cache {
 public:
  /// Opens the layers that can be used; ends in memory only when none can. Writes nothing yet.
  static std::unique_ptr<Cache> open(CacheOptions options);
  ~Cache();

  /// Looks in every layer, first hit wins, and promotes it.
  std::optional<Hit> find(const KeyRecord& key);

  /// find, else runs `make` once for all threads and processes that ask, publishes and returns it.
  ///
  /// Errors:  the maker's own. Those that would come again are remembered as a failure until they
  ///          expire; the machine's troubles (kIo, kOutOfMemory, no compiler, and whatever has the
  ///          reason kMachine) are not. kIo after
  ///          call_off.
  Result<Hit> find_or_make(const KeyRecord& key, const Maker& make, const MakeTerms& terms = {});

  /// Lets no call wait for other processes or machines, now and from now on, from any thread.
  void call_off() noexcept;

  /// Stores an object in memory and, where there is one, the writable directory.
  Hit publish(Object object);

  /// Sets a binary aside that checked out here but was refused elsewhere (a driver), once.
  void distrust(const Key& key, std::string_view why);

  /// Looks in every layer as `find` does and checks the object whole, but counts nothing, promotes
  /// nothing and keeps nothing in memory: for proofs.
  ///
  /// Errors:  why no layer gave it, where one holds it and it is damaged or refused.
  Result<std::optional<Hit>> peek(const KeyRecord& key);

  Result<std::vector<Entry>> entries();

  /// The entries of a layer by its path, or of "memory", "user" or "read_only" (each of them),
  /// other layers notwithstanding.
  ///
  /// Errors:  kNotFound naming the layers there are.
  Result<std::vector<Entry>> entries_of(std::string_view layer);
  Result<std::optional<Object>> read(const Key& key);       ///< By name alone, for inspection.
  Result<std::optional<Object>> read_head(const Key& key);  ///< The same without the payload.
  Result<std::vector<Key>> keys_starting_with(std::string_view hex_prefix);
  Result<std::vector<EntryLimits>> limits();

  std::optional<Failure> failure(const Key& key);
  void remember_failure(const Failure& failure);
  void forget_failure(const Key& key);
  Result<std::vector<Failure>> failures();

  void record_device_limits(const DeviceLimits& limits);
  Result<std::vector<DeviceLimits>> device_limits(const Key& key);
  void record_receipt(const Receipt& receipt);
  Result<std::vector<Receipt>> receipts(const Key& key);
  void record_miss(const JournalRow& row);
  Result<std::vector<JournalRow>> journal();
  void clear_journal();
  void forget_miss(const JournalRow& row);  ///< By family, shape and target.

  /// Reads every object of every layer again. A layer that is named and cannot be used is a
  /// finding.
  Result<VerifyReport> verify();

  /// Signs every object of the writable directory, so that other users can take them from there.
  ///
  /// Errors:  kDenied where no directory can be written; kDamaged for an object that is.
  Result<std::uint64_t> sign(const SecretKey& signer);
  Result<GcReport> gc(const GcRequest& request);
  Result<std::vector<QuarantineRow>> quarantine();

  /// A small fact worth keeping between processes, such as a compiler's identity by build id.
  std::optional<std::string> memo(std::string_view name);
  void remember_memo(std::string_view name, std::string_view value);

  /// Writes down uses and promotions that were put off to keep look-ups quick. Closing does too.
  void flush();

  std::optional<Holder> holder(const Key& key);
  std::vector<LayerStatus> layers() const;

  /// Asks each remote whether it answers, waiting no longer than a look-up would.
  std::vector<RemoteStatus> probe_remotes();

  /// Sends an object, without waiting, to the remotes that have none under its key.
  void share(const Object& object);

  /// Waits until what was made here has reached the remotes; false when that takes longer.
  bool drain_uploads(std::chrono::milliseconds at_most);

  Counters counters() const;

  /// How long things took in this process. Those who use the cache add what they time.
  Metrics& metrics() noexcept;

  struct State;

 private:
  Cache();
  std::unique_ptr<State> state_;
};

}  // namespace broach::cache
