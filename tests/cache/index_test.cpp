#include "cache/index.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "cache/directory.hpp"
#include "cache/index_schema.hpp"
#include "cache/reporter.hpp"
#include "tests/cache/samples.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {

using broach::test::ChildProcess;
using broach::test::TempDir;
using test::Opened;
using test::sample_object;

namespace fs = std::filesystem;

namespace {

// Two objects on disk and an index that knows them.
void fill(const fs::path& dir) {
  Opened cache({dir});
  cache->publish(sample_object("a"));
  cache->publish(sample_object("b"));
}

// A look-up, a compile and a listing: what must succeed whatever the index is like.
void use(Opened& cache, std::size_t objects = 3) {
  CHECK(cache->find(sample_object("a").key));
  const Object made = sample_object("c");
  CHECK(cache->find_or_make(made.key, [&](const Stage&) -> Result<Object> { return made; }));
  const auto entries = cache->entries();
  REQUIRE(entries);
  CHECK(entries->size() == objects);
  const auto limits = cache->limits();
  REQUIRE(limits);
  CHECK(limits->size() == 2 * objects);
  CHECK(cache->verify()->damaged == 0);
}

void sql(const fs::path& dir, const std::string& statement) {
  SQLite::Database database((dir / "index.sqlite3").string(), SQLite::OPEN_READWRITE);
  database.exec(statement);
}

std::string ask(const fs::path& dir, const std::string& query) {
  SQLite::Database database((dir / "index.sqlite3").string(), SQLite::OPEN_READONLY);
  return database.execAndGet(query).getString();
}

// Runs a body as a user without rights, where this one has them; true when it returned true.
bool as_plain_user(const fs::path& dir, const std::function<bool()>& body) {
  if (geteuid() != 0) return body();
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    (void)!lchown(entry.path().c_str(), 65534, 65534);
  }
  (void)!chown(dir.c_str(), 65534, 65534);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("the index lists what was published, with limits and hits", "[cache][index]") {
  const TempDir dir;
  const Object object = sample_object("a");
  fill(dir.path());
  {
    Opened cache({dir.path()});
    REQUIRE(cache->find(object.key));
    REQUIRE(cache->find(object.key));
  }
  Opened cache({dir.path()});
  const auto entries = cache->entries();
  REQUIRE(entries);
  REQUIRE(entries->size() == 2);
  const auto row = std::find_if(entries->begin(), entries->end(),
                                [&](const Entry& e) { return e.key == object.key.key; });
  REQUIRE(row != entries->end());
  CHECK(row->description == object.description);
  CHECK(row->bytes == fs::file_size(test::object_path(dir.path(), object.key.key)));
  CHECK(row->compile_ms == object.provenance.compile_ms);
  CHECK(row->hits == 2);
  CHECK(row->last_used_unix_ms > object.provenance.created_unix_ms);
  CHECK(row->layer.kind == LayerKind::kUser);
  const auto limits = cache->limits();
  REQUIRE(limits);
  REQUIRE(limits->size() == 4);
  for (const EntryLimits& row_limits : *limits) {
    const bool known =
        row_limits.limits == object.limits[0] || row_limits.limits == object.limits[1];
    CHECK(known);
  }
  CHECK(fs::status(dir.path() / "index.sqlite3").permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(ask(dir.path(), "PRAGMA application_id") == std::to_string(kIndexApplicationId));
  CHECK(ask(dir.path(), "PRAGMA user_version") == std::to_string(kIndexVersion));
}

TEST_CASE("a hit opens no database", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  Opened cache({dir.path()});
  REQUIRE(cache->find(sample_object("a").key));
  CHECK_FALSE(cache->find(test::sample_key("none")));
  for (const auto& fd : fs::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    const std::string target = fs::read_symlink(fd.path(), closed).string();
    CHECK(target.find(dir.path().string() + "/index") == std::string::npos);
  }
}

TEST_CASE("an index that is missing is rebuilt from the objects", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  fs::remove(dir.path() / "index.sqlite3");
  Opened cache({dir.path()});
  use(cache);
  CHECK(cache->counters()["index_created"] == 1);
  CHECK(cache.notices->empty());
}

TEST_CASE("an index of garbage is set aside and rebuilt", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  const fs::path file = dir.path() / "index.sqlite3";
  const std::string text = test::read_text(file);
  SECTION("other bytes") { test::write_text(file, std::string(20'000, 'x')); }
  SECTION("a few bytes") { test::write_text(file, "no database"); }
  SECTION("garbage behind a good header") {
    test::write_text(file, text.substr(0, 100) + std::string(text.size() - 100, '\x5a'));
  }
  SECTION("garbage in every page but the first") {
    test::write_text(file, text.substr(0, 4096) + std::string(text.size() - 4096, '\xff'));
  }
  SECTION("cut to the header") { fs::resize_file(file, 100); }
  SECTION("cut to one page") { fs::resize_file(file, 4096); }
  SECTION("cut in the middle of a page") { fs::resize_file(file, text.size() / 2 + 17); }
  SECTION("tables that are not these") {
    fs::remove(file);
    SQLite::Database database(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    database.exec(
        "CREATE TABLE entry (x); PRAGMA application_id = 1651663720; "
        "PRAGMA user_version = 1");
  }
  Opened cache({dir.path()});
  use(cache);
  CHECK(cache->counters()["index_set_aside"] == 1);
  CHECK(cache->counters()["index_created"] == 1);
  CHECK(cache.told("set aside"));
  const auto rows = cache->quarantine();
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  CHECK(rows->front().name.ends_with("index.sqlite3"));
}

TEST_CASE("an empty index file is filled", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  fs::resize_file(dir.path() / "index.sqlite3", 0);
  Opened cache({dir.path()});
  use(cache);
  CHECK(cache->counters()["index_set_aside"] == 0);
}

TEST_CASE("an index of another application or an older version is set aside", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  const bool foreign = GENERATE(true, false);
  sql(dir.path(), foreign ? "PRAGMA application_id = 7" : "PRAGMA user_version = 0");
  Opened cache({dir.path()});
  use(cache);
  CHECK(cache->counters()["index_set_aside"] == 1);
  CHECK(cache.told(foreign ? "another application's" : "older than"));
}

namespace {

// An index as version 1 wrote it: rows of limits, a device's and a journal's.
void fill_version_1(const fs::path& dir, const std::string& more = {}) {
  fill(dir);
  for (const char* name : {"index.sqlite3", "index.sqlite3-wal", "index.sqlite3-shm"}) {
    fs::remove(dir / name);
  }
  const std::string key = sample_object("a").key.key.hex();
  SQLite::Database database((dir / "index.sqlite3").string(),
                            SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  database.exec(index_schema(1));
  database.exec(
      "INSERT INTO device_limit (key, device, driver, function, registers, source) VALUES ('" +
      key + "', 'H200', '580', 'decode_part', 64, 'device')");
  database.exec("INSERT INTO journal VALUES ('window_rows', '{}', 'sm_90a', 3, 1700000000000)");
  database.exec(more.empty() ? "SELECT 1" : more);
}

}  // namespace

TEST_CASE("an index of version 1 keeps its rows and gets the new columns", "[cache][index]") {
  const TempDir dir;
  fill_version_1(dir.path());
  Object object = sample_object("d");
  object.limits[0].block_x = 96;
  object.limits[0].parameter_bytes = {8, 4};
  object.limits[1].parameter_bytes.emplace();
  {
    Opened cache({dir.path()});
    cache->publish(object);
    const auto device = cache->device_limits(sample_object("a").key.key);
    REQUIRE(device);
    REQUIRE(device->size() == 1);
    CHECK(device->front().limits.registers == 64U);
    CHECK_FALSE(device->front().limits.block_x);
    CHECK_FALSE(device->front().limits.parameter_bytes);
    CHECK(cache->journal()->size() == 1);
    CHECK(cache->counters()["index_migrated"] == 1);
    CHECK(cache->counters()["index_set_aside"] == 0);
  }
  CHECK(ask(dir.path(), "PRAGMA user_version") == "2");
  Opened cache({dir.path()});
  use(cache, 4);
  const auto rows = cache->limits();
  REQUIRE(rows);
  for (const LaunchLimits& written : object.limits) {
    CHECK(std::any_of(rows->begin(), rows->end(), [&](const EntryLimits& row) {
      return row.key == object.key.key && row.limits == written;
    }));
  }
  CHECK(cache->counters()["index_migrated"] == 0);
  CHECK(cache->counters()["index_set_aside"] == 0);
}

TEST_CASE("an index of version 1 with something foreign in it is set aside", "[cache][index]") {
  const TempDir dir;
  fill_version_1(dir.path(), "CREATE VIEW planted AS SELECT 1");
  Opened cache({dir.path()});
  use(cache);
  CHECK(cache->counters()["index_set_aside"] == 1);
  CHECK(cache->counters()["index_migrated"] == 0);
}

TEST_CASE("an index of a newer version is only read", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  sql(dir.path(), "PRAGMA user_version = 99");
  Opened cache({dir.path()});
  use(cache);
  CHECK(cache->counters()["index_newer"] >= 1);
  CHECK(cache->counters()["index_set_aside"] == 0);
  CHECK(cache.told("newer broach"));
  CHECK(ask(dir.path(), "PRAGMA user_version") == "99");
  CHECK(ask(dir.path(), "SELECT count(*) FROM entry") == "2");
}

TEST_CASE("an index that another process has locked is done without",
          "[cache][index][multiprocess]") {
  const TempDir dir;
  fill(dir.path());
  ChildProcess locker(BROACH_CACHE_WORKER, {"lock-index", (dir.path() / "index.sqlite3").string()});
  REQUIRE(locker.read_line() == "ready");
  {
    Opened cache({dir.path()});
    use(cache);
    CHECK(cache->counters()["index_busy"] >= 1);
    CHECK(cache->counters()["index_set_aside"] == 0);
  }
  locker.write_line();
  CHECK(locker.wait() == 0);
  Opened cache({dir.path()});
  CHECK(cache->entries()->size() == 3);
  CHECK(ask(dir.path(), "SELECT count(*) FROM entry") == "3");
}

TEST_CASE("an index that cannot be written is done without", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  REQUIRE(chmod((dir.path() / "index.sqlite3").c_str(), 0400) == 0);
  CHECK(as_plain_user(dir.path(), [&] {
    Opened cache({dir.path()});
    const Object made = sample_object("c");
    const auto hit =
        cache->find_or_make(made.key, [&](const Stage&) -> Result<Object> { return made; });
    const auto entries = cache->entries();
    return cache->find(sample_object("a").key) && hit && entries && entries->size() == 3 &&
           cache->counters()["index_failed"] >= 1;
  }));
}

TEST_CASE("a directory that became read-only is read", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  CHECK(as_plain_user(dir.path(), [&] {
    for (const char* folder : {"", "objects", "tmp", "locks"}) {
      fs::permissions(dir.path() / folder, fs::perms::owner_read | fs::perms::owner_exec);
    }
    Opened cache({dir.path()});
    const Object made = sample_object("c");
    const auto hit =
        cache->find_or_make(made.key, [&](const Stage&) -> Result<Object> { return made; });
    const auto found = cache->find(sample_object("a").key);
    const auto entries = cache->entries();
    const bool right = found && found->layer.kind == LayerKind::kReadOnly && hit && entries &&
                       entries->size() == 3 && cache.told("read and not written");
    for (const char* folder : {"", "objects", "tmp", "locks"}) {
      fs::permissions(dir.path() / folder, fs::perms::owner_all);
    }
    return right;
  }));
}

TEST_CASE("what is planted in the index's place is set aside and not followed", "[cache][index]") {
  const TempDir dir;
  const TempDir elsewhere;
  fill(dir.path());
  const fs::path file = dir.path() / "index.sqlite3";
  const fs::path target = elsewhere.path() / "precious";
  test::write_text(target, "precious");
  fs::remove(file);
  SECTION("a link to a file") { fs::create_symlink(target, file); }
  SECTION("a dangling link") { fs::create_symlink(elsewhere.path() / "none", file); }
  SECTION("a directory") { fs::create_directories(file / "inside"); }
  Opened cache({dir.path()});
  use(cache);
  CHECK(test::read_text(target) == "precious");
  CHECK_FALSE(fs::exists(elsewhere.path() / "none"));
  CHECK(fs::is_regular_file(fs::symlink_status(file)));
}

TEST_CASE("an index that is removed underfoot is made again", "[cache][index]") {
  const TempDir dir;
  Opened cache({dir.path()});
  cache->publish(sample_object("a"));
  cache->publish(sample_object("b"));
  fs::remove(dir.path() / "index.sqlite3");
  fs::remove(dir.path() / "index.sqlite3-wal");
  fs::remove(dir.path() / "index.sqlite3-shm");
  use(cache);
}

TEST_CASE("the journal mode follows the file system's reach", "[cache][index]") {
  const TempDir dir;
  auto directory = Directory::open(dir.path(), Trust::kOwn);
  REQUIRE(directory);
  Reporter reporter{Notice()};
  const Reach reach = GENERATE(Reach::kLocal, Reach::kNetwork);
  Index index(**directory, reach, reporter);
  CHECK(index.status() == "there is no index yet");
  REQUIRE(index.record(JournalRow{"f", "{}", "t", 1, 1}));
  CHECK(index.status() == (reach == Reach::kLocal ? "wal" : "delete"));
}

TEST_CASE("a child of a fork opens an index of its own", "[cache][index][multiprocess]") {
  const TempDir dir;
  Opened cache({dir.path()});
  cache->publish(sample_object("a"));
  const pid_t child = fork();
  if (child == 0) {
    cache->publish(sample_object("b"));
    const auto entries = cache->entries();
    cache.cache.reset();
    _exit(entries && entries->size() == 2 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  cache->publish(sample_object("c"));
  CHECK(cache->entries()->size() == 3);
  CHECK(ask(dir.path(), "PRAGMA integrity_check") == "ok");
}

TEST_CASE("rows beside the objects survive the process", "[cache][index]") {
  const TempDir dir;
  const Key key = sample_object("a").key.key;
  LaunchLimits limits;
  limits.function = "decode";
  limits.registers = 128;
  limits.source = "device";
  const DeviceLimits device{key, "NVIDIA H200", "580.1", limits};
  const Receipt receipt{key, "NVIDIA H200", "580.1", R"({"range":"ok"})", "0.1.0", 5};
  {
    Opened cache({dir.path()});
    cache->record_device_limits(device);
    cache->record_device_limits(device);
    cache->record_receipt(receipt);
    cache->record_miss({"window_rows", "{}", "sm_90a", 1, 10});
    cache->record_miss({"window_rows", "{}", "sm_90a", 2, 20});
    cache->record_miss({"window_rows", "{}", "sm_80", 1, 5});
  }
  Opened cache({dir.path()});
  const auto devices = cache->device_limits(key);
  REQUIRE(devices);
  REQUIRE(devices->size() == 1);
  CHECK(devices->front().limits == limits);
  CHECK(devices->front().device == device.device);
  const auto receipts = cache->receipts(key);
  REQUIRE(receipts);
  REQUIRE(receipts->size() == 1);
  CHECK(receipts->front().gates_json == receipt.gates_json);
  const auto journal = cache->journal();
  REQUIRE(journal);
  REQUIRE(journal->size() == 2);
  CHECK(journal->front().count == 3);
  CHECK(journal->front().last_unix_ms == 20);
  cache->clear_journal();
  CHECK(cache->journal()->empty());
}

TEST_CASE("an index's rows may hold anything, and what is asked goes on", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  // Types, lengths, bytes and numbers that nothing here writes.
  sql(dir.path(),
      "UPDATE entry SET bytes = -9223372036854775808, hits = -1, compile_ms = 99999999999, "
      "created = 9223372036854775807, last_used = -9223372036854775808, shape = x'00ff7b', "
      "family = char(27) || '[2J', kind = zeroblob(100), compiler = ''");
  sql(dir.path(),
      "INSERT INTO entry SELECT 'no key', source_hash, target, family, shape, compiler, "
      "kind, 1, digest, 1, 1, 1, 1 FROM entry LIMIT 1");
  sql(dir.path(), "UPDATE launch_limit SET registers = -1, source = x'ff', spill_bytes = 'many'");
  sql(dir.path(),
      "INSERT INTO journal VALUES ('', replace(hex(zeroblob(50000)), '00', '['), 'sm_0', "
      "-5, -9223372036854775808)");
  sql(dir.path(),
      "INSERT INTO failure VALUES ('no key', '', '', 99999999999, '', x'00', "
      "-9223372036854775808, 9223372036854775807)");
  Opened cache({dir.path()});
  CHECK(cache->find(sample_object("a").key));
  const Object made = sample_object("c");
  CHECK(cache->find_or_make(made.key, [&](const Stage&) -> Result<Object> { return made; }));
  CHECK(cache->entries());
  CHECK(cache->limits());
  CHECK(cache->gc({}));
  CHECK(cache->verify()->damaged == 0);
  const auto journal = cache->journal();
  REQUIRE(journal);
  REQUIRE(journal->size() == 1);
  CHECK(journal->front().last_unix_ms == 0);
  CHECK(journal->front().shape_json.size() == 50'000);
  const auto failures = cache->failures();
  REQUIRE(failures);
  for (const Failure& failure : *failures) CHECK(failure.created_unix_ms >= 0);
  CHECK(cache->find(sample_object("b").key));
}

TEST_CASE("those that meet over an empty index file fill it once and set nothing aside",
          "[cache][index]") {
  // As a process leaves it that dies between making the file and its tables. Some read the file's
  // marks while another fills it.
  constexpr int kRounds = 40;
  constexpr std::size_t kAtOnce = 8;
  for (int round = 0; round < kRounds; ++round) {
    const TempDir dir;
    std::ofstream(dir.path() / "index.sqlite3").close();
    fs::permissions(dir.path() / "index.sqlite3", fs::perms(0600));
    std::barrier start(static_cast<std::ptrdiff_t>(kAtOnce));
    std::vector<std::thread> threads;
    std::atomic<std::uint64_t> set_aside{0};
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      threads.emplace_back([&, i] {
        Opened cache({dir.path()});
        start.arrive_and_wait();
        cache->publish(sample_object("from " + std::to_string(i)));
        cache->flush();
        set_aside += cache->counters()["index_set_aside"];
      });
    }
    for (std::thread& thread : threads) thread.join();
    CAPTURE(round);
    CHECK(set_aside == 0);
    CHECK(Opened({dir.path()})->quarantine()->empty());
  }
}

TEST_CASE("an index with a part that is not ours is set aside", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  const std::string endless =
      "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";
  const std::string part = GENERATE_COPY(
      as<std::string>{},
      "CREATE TRIGGER slow AFTER INSERT ON entry BEGIN UPDATE entry SET hits = (" + endless +
          "); END",
      "CREATE TRIGGER hides AFTER INSERT ON entry BEGIN DELETE FROM entry; END",
      "DROP TABLE journal; CREATE VIEW journal AS " + endless, "CREATE TABLE more (x)",
      "CREATE INDEX more ON entry (bytes)", "DROP TABLE receipt",
      "DROP TABLE receipt; CREATE TABLE receipt (key, device, driver, gates, broach_version, "
      "created)");
  CAPTURE(part);
  sql(dir.path(), part);
  Opened cache({dir.path()});
  use(cache);
  CHECK(cache->counters()["index_set_aside"] == 1);
  CHECK(cache->entries()->size() == 3);
}

TEST_CASE("an index of a newer version that has a view is not read", "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  sql(dir.path(),
      "PRAGMA user_version = 99; DROP TABLE journal; CREATE VIEW journal AS WITH RECURSIVE n(x) AS "
      "(SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS family, x AS shape, x AS target, x AS "
      "count, x AS last FROM n");
  Opened cache({dir.path()});
  use(cache);
  CHECK(cache->journal()->empty());
}

TEST_CASE("work on an index that takes too long is given up, and not begun again for a while",
          "[cache][index]") {
  const TempDir dir;
  fill(dir.path());
  sql(dir.path(),
      "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) INSERT INTO "
      "journal SELECT 'f', x, 't', 1, x FROM n");
  auto directory = Directory::open(dir.path(), Trust::kOwn);
  REQUIRE(directory);
  Reporter reporter{Notice()};
  Index index(**directory, Reach::kLocal, reporter, std::chrono::milliseconds(0));
  CHECK_FALSE(index.journal());
  CHECK(reporter.counters()["index_failed_sqlite_9"] == 1);  // SQLITE_INTERRUPT
  CHECK_FALSE(index.journal());
  CHECK(reporter.counters()["index_skipped"] == 1);
}

TEST_CASE("the index is opened in the directory that was checked, wherever its path leads now",
          "[cache][index][trust]") {
  const TempDir dir;
  const fs::path place = dir.path() / "cache";
  const fs::path elsewhere = dir.path() / "elsewhere";
  fill(place);
  fs::remove(place / "index.sqlite3");
  fs::create_directory(elsewhere);
  fs::permissions(elsewhere, fs::perms::owner_all);
  Opened cache({place});
  fs::rename(place, dir.path() / "moved");
  fs::create_directory_symlink(elsewhere, place);
  const Object made = sample_object("c");
  cache->publish(made);
  CHECK(fs::is_empty(elsewhere));
  CHECK(fs::exists(test::object_path(dir.path() / "moved", made.key.key)));
  fs::remove(place);
  fs::rename(dir.path() / "moved", place);
  use(cache);
}

}  // namespace broach::cache
