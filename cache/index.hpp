#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "cache/cache.hpp"
#include "cache/digest.hpp"
#include "cache/directory.hpp"
#include "cache/file_lock.hpp"
#include "cache/quarantine.hpp"
#include "cache/reporter.hpp"

namespace SQLite {
class Database;
class Exception;
}  // namespace SQLite

namespace broach::cache {

struct Usage {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
};

/// How often and when a key was used since the index was last told.
struct Use {
  std::uint64_t hits = 0;
  std::int64_t last_unix_ms = 0;
};

/// An object as the index keeps it.
struct IndexedObject {
  Object head;  ///< Without payload.
  std::uint64_t bytes = 0;
  Digest payload_digest{};
  std::int64_t used_unix_ms = 0;
};

/// An SQLite index of a directory's objects, and the records that belong to no object.
///
/// No hit depends on it. Nothing is opened before the first call. A file that is malformed, of
/// another application, or has a table, view or trigger that is not ours, is set aside and begun
/// anew; an older one is migrated; a newer one is only read; one that is locked, full, slow or
/// unreadable is done without. All of that is counted. The file is opened in the checked directory,
/// never through a link.
///
/// Errors:  why the index could not answer; the caller goes on without it.
/// Threads: any, one at a time inside. After a fork, the child opens its own connection.
/// Source:  design of the tables: docs/cache_format.md.
class Index {
 public:
  /// One piece of work may take so long; what is slower is done without.
  static constexpr std::chrono::milliseconds kWorkLimit{5'000};

  Index(Directory& directory, Reach reach, Reporter& reporter,
        std::chrono::milliseconds work_limit = kWorkLimit);
  ~Index();

  Result<void> record(std::span<const IndexedObject> objects);
  Result<void> forget(const std::vector<Key>& keys);
  Result<void> add_uses(const std::map<Key, Use>& uses);

  Result<std::vector<Entry>> entries();
  Result<std::vector<EntryLimits>> limits();

  /// The sum of all rows; absent in an index that was made anew, until `count_usage`.
  Result<std::optional<Usage>> usage();

  /// Says that every object has its row.
  Result<void> count_usage();

  Result<void> remember(const Failure& failure);
  Result<void> forget_failure(const Key& key);
  Result<std::vector<Failure>> failures(std::int64_t now_ms);

  Result<void> record(const DeviceLimits& limits);
  Result<std::vector<DeviceLimits>> device_limits(const Key& key);
  Result<void> record(const Receipt& receipt);
  Result<std::vector<Receipt>> receipts(const Key& key);
  Result<void> record(const JournalRow& row);
  Result<std::vector<JournalRow>> journal();
  Result<void> clear_journal();
  Result<void> forget_miss(const JournalRow& row);

  /// SQLite's journal mode, or why there is no index; opens what exists and creates nothing.
  std::string status();

 private:
  enum class Purpose : std::uint8_t { kRead, kWrite };

  template <class T>
  Result<T> run(Purpose purpose, const std::function<T(SQLite::Database&)>& work);
  Result<SQLite::Database*> connect(Purpose purpose);
  Result<void> open(Purpose purpose);
  Result<void> open_file(int flags);
  Result<void> create_file(int root);
  static int out_of_time(void* index) noexcept;
  Result<void> open_newer(std::int64_t version);
  void prepare();
  void create_tables();
  void migrate();
  Result<FileLock> lock(std::shared_ptr<const Fd>& locks);
  bool present();
  bool same_file();
  void disconnect() noexcept;
  bool recover(const SQLite::Exception& error);
  void set_aside(std::string_view why);

  Directory& directory_;
  const Reach reach_;
  const std::chrono::milliseconds work_limit_;
  Reporter& reporter_;
  Quarantine quarantine_;
  std::mutex mutex_;
  std::unique_ptr<SQLite::Database> database_;
  pid_t owner_ = 0;          ///< The process that opened the connection.
  std::uint64_t inode_ = 0;  ///< Of the file that is open.
  int set_aside_count_ = 0;
  bool read_only_ = false;  ///< A newer file, or one that cannot be written.
  std::chrono::steady_clock::time_point busy_until_{};
  std::chrono::steady_clock::time_point work_until_{};
};

}  // namespace broach::cache
