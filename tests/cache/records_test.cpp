#include "cache/records.hpp"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <string>

#include "cache/file.hpp"
#include "cache/memo.hpp"
#include "tests/cache/samples.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {

using broach::test::TempDir;
using test::Opened;
using test::sample_key;

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> disk_or_memory(const TempDir& dir, bool on_disk) {
  return on_disk ? std::vector<fs::path>{dir.path()} : std::vector<fs::path>{};
}

}  // namespace

TEST_CASE("a failed compile is not tried again until it expires", "[cache][records]") {
  const TempDir dir;
  const KeyRecord key = KeyBuilder().field("target", "sm_90a").field("compiler", "nvrtc").finish();
  int compiles = 0;
  const Maker maker = [&](const Stage&) -> Result<Object> {
    ++compiles;
    return Error{ErrorCode::kCompileFailed, "line 7: no", "the whole log"};
  };
  const bool reopened = GENERATE(false, true);
  Opened first({dir.path()});
  REQUIRE_FALSE(first->find_or_make(key, maker));
  Opened second({dir.path()});
  const auto again = (reopened ? second : first)->find_or_make(key, maker);
  REQUIRE_FALSE(again);
  CHECK(compiles == 1);
  CHECK(again.error().code == ErrorCode::kCompileFailed);
  CHECK(again.error().detail == "the whole log");
  CHECK(again.error().message.find("line 7: no (remembered") != std::string::npos);
  const auto rows = second->failures();
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  CHECK(rows->front().target == "sm_90a");
  CHECK(rows->front().compiler == "nvrtc");
  CHECK_FALSE(second->find(key));

  first->forget_failure(key.key);
  REQUIRE_FALSE(first->find_or_make(key, maker));
  CHECK(compiles == 2);
}

TEST_CASE("a failure counts between its making and its expiry only", "[cache][records]") {
  const TempDir dir;
  Opened cache(disk_or_memory(dir, GENERATE(true, false)));
  const std::int64_t now = now_unix_ms();
  Failure failure;
  failure.key = sample_key("a").key;
  failure.error = {ErrorCode::kTimedOut, "too slow", ""};
  const auto counts = [&](std::int64_t created, std::int64_t expires) {
    failure.created_unix_ms = created;
    failure.expires_unix_ms = expires;
    cache->remember_failure(failure);
    return cache->failure(failure.key).has_value();
  };
  CHECK(counts(now - 1000, now + 60'000));
  CHECK_FALSE(counts(now - 1000, now - 1));
  CHECK_FALSE(counts(now + 60'000, now + 120'000));  // The clock was set back.
  CHECK_FALSE(cache->failure(sample_key("b").key));
}

TEST_CASE("a failure is remembered while the index is busy or gone", "[cache][records]") {
  const TempDir dir;
  const KeyRecord key = sample_key("a");
  const Maker maker = [](const Stage&) -> Result<Object> {
    return Error{ErrorCode::kCompileFailed, "no", "log"};
  };
  REQUIRE_FALSE(Opened({dir.path()})->find_or_make(key, maker));
  fs::remove(dir.path() / "index.sqlite3");
  Opened cache({dir.path()});
  REQUIRE_FALSE(cache->find_or_make(key, maker));
  CHECK(cache->counters()["failure_served"] == 1);
  CHECK(cache->counters()["made"] == 0);
}

TEST_CASE("a failure under other limits is none, and who tries again is not kept from it",
          "[cache][records]") {
  const TempDir dir;
  const KeyRecord key = sample_key("a");
  int calls = 0;
  const Maker maker = [&](const Stage&) -> Result<Object> {
    ++calls;
    return Error{ErrorCode::kTimedOut, "stopped", "log"};
  };
  const MakeTerms low{"1 s", MakeTerms::Remembered::kStands};
  const MakeTerms high{"2 s", MakeTerms::Remembered::kStands};
  const MakeTerms again{"2 s", MakeTerms::Remembered::kIsTriedAgain};
  // In one process and in the next.
  const auto try_with = [&](const MakeTerms& terms) {
    Opened cache(disk_or_memory(dir, true));
    REQUIRE_FALSE(cache->find_or_make(key, maker, terms));
    const int before = calls;
    REQUIRE_FALSE(cache->find_or_make(key, maker, terms));
    return calls - before;
  };
  CHECK(try_with(low) == 0);
  CHECK(calls == 1);
  CHECK(try_with(low) == 0);
  CHECK(calls == 1);  // The second process was served the first one's failure.
  CHECK(try_with(high) == 0);
  CHECK(calls == 2);  // A limit was raised.
  CHECK(try_with(again) == 1);
  CHECK(calls == 4);
}

TEST_CASE("the machine's troubles are not remembered", "[cache][records]") {
  const TempDir dir;
  Opened cache(disk_or_memory(dir, GENERATE(true, false)));
  const KeyRecord key = sample_key("a");
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kOutOfMemory, ErrorCode::kLimitExceeded,
                               ErrorCode::kCompilerMissing}) {
    REQUIRE_FALSE(cache->find_or_make(key, [&](const Stage&) -> Result<Object> {
      return Error{code, "trouble", ""};
    }));
    CHECK_FALSE(cache->failure(key.key));
  }
  REQUIRE_FALSE(cache->find_or_make(key, [&](const Stage&) -> Result<Object> {
    return Error{ErrorCode::kCompilerDied, "killed", "", Reason::kMachine};
  }));
  CHECK_FALSE(cache->failure(key.key));
}

TEST_CASE("a wait for another's binary is called off from another thread", "[cache][records]") {
  const TempDir dir;
  Opened cache(disk_or_memory(dir, true));
  cache->call_off();
  bool made = false;
  const auto hit = cache->find_or_make(sample_key("a"), [&](const Stage&) -> Result<Object> {
    made = true;
    return Error{ErrorCode::kInternal, "", ""};
  });
  REQUIRE_FALSE(hit);
  CHECK(hit.error().code == ErrorCode::kIo);
  CHECK_FALSE(made);
}

TEST_CASE("the journal merges equal shapes and is bounded", "[cache][records]") {
  Records records;
  for (int i = 0; i < 5000; ++i) {
    records.record(JournalRow{"f", std::to_string(i), "t", 1, i});
  }
  records.record(JournalRow{"f", "4999", "t", 2, 1});
  const auto rows = records.journal();
  CHECK(rows.size() == 4096);
  const auto last = std::find_if(rows.begin(), rows.end(),
                                 [](const JournalRow& row) { return row.shape_json == "4999"; });
  REQUIRE(last != rows.end());
  CHECK(last->count == 3);
  CHECK(last->last_unix_ms == 4999);
}

TEST_CASE("the journal on disk merges what processes missed and drops the oldest beyond its bound",
          "[cache][records]") {
  constexpr int kBound = 10'000;
  const TempDir dir;
  Opened({dir.path()})->record_miss({"f", "first", "t", 1, 0});
  {
    SQLite::Database database((dir.path() / "index.sqlite3").string(), SQLite::OPEN_READWRITE);
    SQLite::Transaction transaction(database);
    SQLite::Statement row(database, "INSERT INTO journal VALUES ('f', ?, 't', 1, ?)");
    for (int i = 1; i < kBound; ++i) {
      row.bind(1, std::to_string(i));
      row.bind(2, i);
      row.exec();
      row.reset();
    }
    transaction.commit();
  }
  CHECK(Opened({dir.path()})->journal()->size() == kBound);
  Opened({dir.path()})->record_miss({"f", "9999", "t", 2, kBound});
  CHECK(Opened({dir.path()})->journal()->size() == kBound);
  Opened({dir.path()})->record_miss({"f", "new", "t", 1, kBound});
  const auto rows = Opened({dir.path()})->journal();
  REQUIRE(rows);
  CHECK(rows->size() == kBound);
  CHECK(rows->front().shape_json == "9999");
  CHECK(rows->front().count == 3);
  const auto has = [&](const char* shape) {
    return std::any_of(rows->begin(), rows->end(),
                       [&](const JournalRow& row) { return row.shape_json == shape; });
  };
  CHECK(has("new"));
  CHECK_FALSE(has("first"));
}

TEST_CASE("a memo survives the process and needs no database", "[cache][memo]") {
  const TempDir dir;
  Opened({dir.path()})->remember_memo("nvrtc build id", "13.0.88");
  CHECK_FALSE(fs::exists(dir.path() / "index.sqlite3"));
  Opened cache({dir.path()});
  CHECK(cache->memo("nvrtc build id") == "13.0.88");
  CHECK_FALSE(cache->memo("another"));
  cache->remember_memo("nvrtc build id", "13.1");
  CHECK(Opened({dir.path()})->memo("nvrtc build id") == "13.1");
}

TEST_CASE("a damaged memo is no memo", "[cache][memo]") {
  const TempDir dir;
  Opened({dir.path()})->remember_memo("name", "value");
  const fs::path file = fs::directory_iterator(dir.path() / "memo")->path();
  const std::string text = test::read_text(file);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string turned = text;
    turned[i] = static_cast<char>(turned[i] ^ 1);
    test::write_text(file, turned);
    CHECK_FALSE(Opened({dir.path()})->memo("name"));
  }
  fs::resize_file(file, 3);
  CHECK_FALSE(Opened({dir.path()})->memo("name"));
}

TEST_CASE("memos are bounded", "[cache][memo]") {
  const TempDir dir;
  auto directory = Directory::open(dir.path(), Trust::kOwn);
  REQUIRE(directory);
  Memos memos(**directory, "memo");
  for (int i = 0; i < 300; ++i) REQUIRE(memos.remember(std::to_string(i), "x"));
  CHECK(test::files_in(dir.path() / "memo") == 256);
}

TEST_CASE("records work without a directory", "[cache][records]") {
  Opened cache({});
  const Key key = sample_key("a").key;
  cache->record_receipt({key, "d", "v", "{}", "0.1.0", 1});
  cache->record_device_limits({key, "d", "v", {}});
  cache->record_miss({"f", "{}", "t", 1, 1});
  cache->remember_memo("m", "v");
  CHECK(cache->receipts(key)->size() == 1);
  CHECK(cache->device_limits(key)->size() == 1);
  CHECK(cache->journal()->size() == 1);
  CHECK(cache->memo("m") == "v");
  CHECK(cache->entries()->empty());
}

}  // namespace broach::cache
