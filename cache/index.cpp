#include "cache/index.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

#include "cache/index_run.hpp"
#include "cache/index_schema.hpp"
#include "cache/os_error.hpp"
#include "cache/transaction.hpp"

namespace broach::cache {
namespace {

constexpr const char* kFile = "index.sqlite3";

// A launch may wait for the index this long, and then not again for a while.
constexpr int kBusyTimeoutMs = 100;
constexpr std::chrono::milliseconds kBusyPause{500};

// An index whose work took longer than it may is left alone for a minute.
constexpr std::chrono::seconds kSlowPause{60};
// Steps of SQLite's machine between two looks at the clock: some tens of microseconds.
constexpr int kStepsPerLook = 4096;

// A process that sets its index aside more often than this has another trouble than the file.
constexpr int kMaxSetAside = 4;

std::int64_t pragma(SQLite::Database& database, const char* query) {
  return database.execAndGet(query).getInt64();
}

/// What tells an index from other databases, and from an empty file.
struct Marks {
  std::int64_t application = 0;
  std::int64_t version = 0;
  bool empty = false;
};

// In one transaction: read one by one, they could be from before and after another process filled
// the file.
Marks marks_of(SQLite::Database& database) {
  const Transaction snapshot(database, Transaction::Begin::kDeferred);
  Marks marks;
  marks.empty = pragma(database, "SELECT count(*) FROM sqlite_master") == 0;
  marks.application = pragma(database, "PRAGMA application_id");
  marks.version = pragma(database, "PRAGMA user_version");
  return marks;
}

bool is_malformed(int code) {
  // SQLITE_ERROR and SQLITE_CONSTRAINT here mean tables that are not the ones this code made.
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR ||
         code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH || code == SQLITE_FORMAT;
}

}  // namespace

Index::Index(Directory& directory, Reach reach, Reporter& reporter,
             std::chrono::milliseconds work_limit)
    : directory_(directory),
      reach_(reach),
      work_limit_(work_limit),
      reporter_(reporter),
      quarantine_(directory) {}

Index::~Index() { disconnect(); }

// A connection must not be closed by a child that inherited it: that could take the parent's locks
// and its write-ahead log away. The child leaks it.
void Index::disconnect() noexcept {
  if (owner_ != getpid()) (void)database_.release();
  database_.reset();
  owner_ = 0;
  inode_ = 0;
  read_only_ = false;
}

// Whether there is a regular file in the index's place; anything else there is set aside.
bool Index::present() {
  const auto root = directory_.root(IfMissing::kFail);
  struct stat status {};
  if (!root || fstatat((*root)->get(), kFile, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  inode_ = status.st_ino;
  const bool ours = status.st_uid == geteuid() || status.st_uid == 0;
  if (S_ISREG(status.st_mode) && ours) return true;
  set_aside("it is not a regular file of this user's");
  return false;
}

bool Index::same_file() {
  const auto root = directory_.root(IfMissing::kFail);
  struct stat status {};
  return root && fstatat((*root)->get(), kFile, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         status.st_ino == inode_;
}

Result<SQLite::Database*> Index::connect(Purpose purpose) {
  if (database_ != nullptr && (owner_ != getpid() || !same_file())) disconnect();
  if (database_ == nullptr) {
    if (auto opened = open(purpose); !opened) return opened.error();
  }
  if (purpose == Purpose::kWrite && read_only_) {
    return Error{ErrorCode::kUnsupported, "the index is only read", ""};
  }
  return database_.get();
}

int Index::out_of_time(void* index) noexcept {
  return std::chrono::steady_clock::now() > static_cast<Index*>(index)->work_until_ ? 1 : 0;
}

// SQLite takes a path. This one was just walked from / down and has no link in it; nobody but this
// user and root can change what it leads to, and afterwards it is held against the open directory.
Result<void> Index::open_file(int flags) {
  const auto path = directory_.physical_path();
  if (!path) return path.error();
  const std::string file = (std::filesystem::path(*path) / kFile).string();
  owner_ = getpid();
  database_ = std::make_unique<SQLite::Database>(
      file, flags | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX, kBusyTimeoutMs);
  sqlite3_progress_handler(database_->getHandle(), kStepsPerLook, &Index::out_of_time, this);
  database_->exec("PRAGMA temp_store = MEMORY");  // No file outside of the directory.
  const auto root = directory_.root(IfMissing::kFail);
  struct stat ours {};
  struct stat named {};
  if (root && fstatat((*root)->get(), kFile, &ours, AT_SYMLINK_NOFOLLOW) == 0 &&
      lstat(file.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
      ours.st_ino == named.st_ino) {
    return {};
  }
  disconnect();
  return Error{ErrorCode::kDenied, fmt::format("{} leads to another file than before", file), "",
               Reason::kUnsafe};
}

// By name, in the open directory: opening and closing the file here would drop SQLite's locks on
// it.
Result<void> Index::create_file(int root) {
  if (mknodat(root, kFile, S_IFREG | 0600, 0) == 0 || errno == EEXIST) return {};
  const Fd file(openat(root, kFile, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file || errno == EEXIST) return {};
  return os_error("create", (directory_.path() / kFile).string(), errno);
}

Result<void> Index::open(Purpose purpose) {
  const auto root =
      directory_.root(purpose == Purpose::kWrite ? IfMissing::kCreate : IfMissing::kFail);
  if (!root) return root.error();
  bool exists = present();
  if (!exists && purpose == Purpose::kRead) {
    return Error{ErrorCode::kNotFound, "there is no index yet", ""};
  }
  std::shared_ptr<const Fd> locks;
  std::optional<FileLock> creation;
  if (!exists) {
    // Processes that find no index at one time make it one after another.
    auto taken = lock(locks);
    if (!taken) return taken.error();
    creation.emplace(std::move(*taken));
    exists = present();
  }
  if (!exists) {
    if (auto made = create_file((*root)->get()); !made) return made;
    if (!present()) return Error{ErrorCode::kIo, "the index's file is gone again", ""};
  }
  if (auto opened = open_file(SQLite::OPEN_READWRITE); !opened) return opened;
  const auto [application, version, empty] = marks_of(*database_);
  if (empty && application == 0 && version == 0) {
    prepare();
    create_tables();
    return {};
  }
  std::string stranger;
  if (application == kIndexApplicationId && version == kIndexVersion) {
    stranger = foreign_part(*database_);
    if (stranger.empty()) {
      prepare();
      return {};
    }
  }
  if (application == kIndexApplicationId && version > kIndexVersion) return open_newer(version);
  if (application == kIndexApplicationId && version == 1) {
    stranger = foreign_part(*database_, 1);
    if (stranger.empty()) {
      prepare();
      migrate();
      return {};
    }
  }
  creation.reset();
  set_aside(!stranger.empty() ? stranger
            : application != kIndexApplicationId
                ? "it is another application's database"
                : fmt::format("its tables have version {}, older than {}", version, kIndexVersion));
  if (same_file()) return Error{ErrorCode::kIo, "a foreign index could not be set aside", ""};
  return open(purpose);
}

Result<void> Index::open_newer(std::int64_t version) {
  disconnect();
  (void)present();
  if (auto opened = open_file(SQLite::OPEN_READONLY); !opened) return opened;
  // No version has a view, and one of a stranger's would run whatever is read.
  if (pragma(*database_, "SELECT count(*) FROM sqlite_master WHERE type = 'view'") != 0) {
    disconnect();
    return Error{ErrorCode::kDenied, "the index has a view, which is not ours", ""};
  }
  read_only_ = true;
  reporter_.count("index_newer");
  reporter_.tell_once(
      "index_newer", fmt::format("{} was written by a newer broach (tables of version {}, this one "
                                 "writes {}): it is only read",
                                 (directory_.path() / kFile).string(), version, kIndexVersion));
  return {};
}

void Index::prepare() {
  // A write-ahead log needs memory that all its users share: one machine's file systems only.
  const std::string mode = reach_ == Reach::kLocal ? "wal" : "delete";
  if (database_->execAndGet("PRAGMA journal_mode").getString() != mode) {
    (void)database_->execAndGet("PRAGMA journal_mode = " + mode);
  }
  database_->exec("PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF");
}

void Index::create_tables() {
  Transaction transaction(*database_, Transaction::Begin::kImmediate);
  // An empty file that a process left as it died may be filled by two others at one time.
  if (pragma(*database_, "PRAGMA application_id") != 0) return;
  database_->exec(index_schema());
  transaction.commit();
  reporter_.count("index_created");
}

void Index::migrate() {
  Transaction transaction(*database_, Transaction::Begin::kImmediate);
  if (pragma(*database_, "PRAGMA user_version") != 1) return;  // Another process was first.
  database_->exec(index_migration());
  transaction.commit();
  reporter_.count("index_migrated");
}

// The lock under which the index's file comes and goes; `locks` keeps its folder open.
Result<FileLock> Index::lock(std::shared_ptr<const Fd>& locks) {
  auto folder = directory_.folder("locks", IfMissing::kCreate);
  if (!folder) return folder.error();
  locks = std::move(*folder);
  auto taken =
      FileLock::take_within(locks->get(), "index", std::chrono::milliseconds(kBusyTimeoutMs));
  if (!taken) return taken.error();
  if (!taken->has_value()) return Error{ErrorCode::kIo, "another process makes the index", ""};
  return std::move(**taken);
}

// Moves the file that was found wanting to quarantine, once for all processes that find it so.
void Index::set_aside(std::string_view why) {
  const std::uint64_t inode = inode_;
  disconnect();
  inode_ = inode;
  const auto root = directory_.root(IfMissing::kFail);
  std::shared_ptr<const Fd> locks;
  const auto held = lock(locks);
  // Once it is ours, another process may have been here and the file be a new one.
  if (!root || !held || !same_file() || ++set_aside_count_ > kMaxSetAside) return;
  // The logs first: a log that outlived its database would be replayed into the next one.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    (void)unlinkat((*root)->get(), (std::string(kFile) + suffix).c_str(), 0);
  }
  const auto taken = quarantine_.take((*root)->get(), kFile, why);
  if (!taken) {
    reporter_.fault("index_set_aside_failed", taken.error(), "the cache goes on without an index");
    return;
  }
  reporter_.count("index_set_aside");
  reporter_.tell_once("index_set_aside",
                      fmt::format("{} was set aside ({}) and is rebuilt from the objects",
                                  (directory_.path() / kFile).string(), why));
}

// Says whether the work is worth trying again after an error.
bool Index::recover(const SQLite::Exception& error) {
  const int code = error.getErrorCode() & 0xff;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
    reporter_.count("index_busy");
    busy_until_ = std::chrono::steady_clock::now() + kBusyPause;
    return false;
  }
  if (is_malformed(code) && !read_only_) {
    set_aside(error.what());
    return !same_file();
  }
  if (code == SQLITE_INTERRUPT) busy_until_ = std::chrono::steady_clock::now() + kSlowPause;
  const Error told{
      ErrorCode::kIo,
      fmt::format("the index {} failed: {}", (directory_.path() / kFile).string(), error.what()),
      fmt::format("sqlite_{}", code)};
  reporter_.fault("index_failed", told, "the cache goes on from the objects");
  disconnect();
  return false;
}

std::string Index::status() {
  const auto mode = run<std::string>(Purpose::kRead, [this](SQLite::Database& database) {
    const std::string journal = database.execAndGet("PRAGMA journal_mode").getString();
    return read_only_ ? journal + ", newer: only read" : journal;
  });
  return mode ? *mode : mode.error().message;
}

}  // namespace broach::cache
