#include "cache/turn.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "tests/cache/samples.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {

using broach::test::ChildProcess;
using broach::test::TempDir;
using test::Opened;
using test::sample_key;
using test::sample_object;

namespace fs = std::filesystem;

namespace {

constexpr const char* kWorker = BROACH_CACHE_WORKER;

std::size_t lines_in(const fs::path& file) {
  const std::string text = test::read_text(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Starts `count` processes that ask for one key at one moment and says how many compiled.
std::size_t ask_from_processes(const fs::path& dir, int count, int compile_ms) {
  const std::string log = (dir / "compiles").string();
  std::vector<ChildProcess> workers;
  for (int i = 0; i < count; ++i) {
    workers.emplace_back(kWorker, std::vector<std::string>{"make", (dir / "cache").string(), "a",
                                                           std::to_string(compile_ms), log});
  }
  for (const ChildProcess& worker : workers) CHECK(worker.read_line() == "ready");
  for (const ChildProcess& worker : workers) worker.write_line();
  for (ChildProcess& worker : workers) {
    CHECK(worker.read_line().starts_with("right"));
    CHECK(worker.wait() == 0);
  }
  CHECK(test::files_in(dir / "cache" / "locks") == 0);
  CHECK(test::files_in(dir / "cache" / "tmp") == 0);
  return lines_in(log);
}

}  // namespace

TEST_CASE("two processes that ask for one key compile it once", "[cache][turn][multiprocess]") {
  const TempDir dir;
  CHECK(ask_from_processes(dir.path(), 2, 20) == 1);
}

TEST_CASE("64 processes that ask for one cold key compile it once", "[cache][turn][multiprocess]") {
  const TempDir dir;
  CHECK(ask_from_processes(dir.path(), 64, 50) == 1);
}

TEST_CASE("a compile that fails fails once for all processes", "[cache][turn][multiprocess]") {
  const TempDir dir;
  const std::string log = (dir.path() / "compiles").string();
  std::vector<ChildProcess> workers;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back(
        kWorker, std::vector<std::string>{"fail", (dir.path() / "cache").string(), "a", log});
  }
  for (const ChildProcess& worker : workers) CHECK(worker.read_line() == "ready");
  for (const ChildProcess& worker : workers) worker.write_line();
  for (ChildProcess& worker : workers) CHECK(worker.wait() == 0);
  CHECK(lines_in(log) == 1);
}

TEST_CASE("a waiter can tell who compiles, and takes over when the holder is killed",
          "[cache][turn][multiprocess]") {
  const TempDir dir;
  const std::string stage = GENERATE("start", "compile", "limits", "publish");
  ChildProcess holder(kWorker, {"hold", dir.path().string(), "a", stage});
  REQUIRE(holder.read_line() == "ready");
  Opened cache({dir.path()});
  const Object object = sample_object("a");
  const auto seen = cache->holder(object.key.key);
  REQUIRE(seen);
  CHECK(seen->pid == holder.pid());
  CHECK(seen->stage == stage);
  CHECK(seen->seconds >= 0);

  int compiles = 0;
  bool served = false;
  std::thread waiter([&] {
    const auto hit = cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> {
      ++compiles;
      return object;
    });
    served = hit.ok();
  });
  while (cache->counters()["lock_waited"] == 0) std::this_thread::yield();
  holder.signal(SIGKILL);
  CHECK(holder.wait() == -SIGKILL);
  waiter.join();
  CHECK(served);
  CHECK(compiles == 1);
  CHECK(cache->counters()["lock_taken_over"] == 1);
  CHECK_FALSE(cache->holder(object.key.key));
  CHECK(test::files_in(dir.path() / "locks") == 0);
}

TEST_CASE("nobody notices when a waiter is killed", "[cache][turn][multiprocess]") {
  const TempDir dir;
  Opened cache({dir.path()});
  const Object object = sample_object("a");
  std::optional<ChildProcess> other;
  const auto hit = cache->find_or_make(object.key, [&](const Stage& stage) -> Result<Object> {
    stage("compile");
    ChildProcess waiter(kWorker, {"wait", dir.path().string(), "a"});
    other.emplace(kWorker, std::vector<std::string>{"wait", dir.path().string(), "a"});
    CHECK(waiter.read_line() == "ready");
    CHECK(other->read_line() == "ready");
    waiter.signal(SIGKILL);
    CHECK(waiter.wait() == -SIGKILL);
    const auto holder = cache->holder(object.key.key);
    CHECK((holder && holder->pid == getpid() && holder->stage == "compile"));
    return object;
  });
  CHECK(hit);
  // Who waited beside it is served all the same.
  REQUIRE(other);
  CHECK(other->wait() == 0);
  CHECK(cache->counters()["made"] == 1);
  CHECK(test::files_in(dir.path() / "locks") == 0);
  CHECK(test::files_in(dir.path() / "tmp") == 0);
}

TEST_CASE("a holder that is stopped is not waited for", "[cache][turn][multiprocess]") {
  const TempDir dir;
  ChildProcess holder(kWorker, {"hold", dir.path().string(), "a", "compile"});
  REQUIRE(holder.read_line() == "ready");
  holder.signal(SIGSTOP);
  auto directory = Directory::open(dir.path(), Trust::kOwn);
  REQUIRE(directory);
  std::vector<std::string> told;
  Reporter reporter([&](std::string_view line) { told.emplace_back(line); });
  Turn::Patience patience;
  patience.stopped = std::chrono::milliseconds(100);
  patience.notice = std::chrono::seconds(0);
  const Turn turn = Turn::take(
      **directory, sample_key("a").key, reporter, [] { return false; }, patience);
  CHECK_FALSE(turn.served());
  CHECK(reporter.counters()["holder_stalled"] == 1);
  REQUIRE(told.size() == 1);
  CHECK(told[0].find(std::to_string(holder.pid())) != std::string::npos);
  CHECK(told[0].find("compile") != std::string::npos);
}

TEST_CASE("a holder that moves on is waited for, whatever a stage takes",
          "[cache][turn][multiprocess]") {
  const TempDir dir;
  ChildProcess holder(kWorker, {"walk", dir.path().string(), "a"});
  REQUIRE(holder.read_line() == "ready");
  auto directory = Directory::open(dir.path(), Trust::kOwn);
  REQUIRE(directory);
  Reporter reporter{Notice()};
  // No patience with a stage that lasts: the wait goes on because each look finds another one.
  Turn::Patience patience;
  patience.stage = std::chrono::minutes(0);
  const auto start = std::chrono::steady_clock::now();
  const Turn turn = Turn::take(
      **directory, sample_key("a").key, reporter,
      [&] {
        holder.write_line();
        CHECK(holder.read_line() == "ready");
        return std::chrono::steady_clock::now() - start > std::chrono::milliseconds(500);
      },
      patience);
  CHECK(turn.served());
  CHECK(turn.waited());
  CHECK(reporter.counters()["holder_stalled"] == 0);
}

TEST_CASE("a stage that never ends is not waited for", "[cache][turn][multiprocess]") {
  const TempDir dir;
  ChildProcess holder(kWorker, {"hold", dir.path().string(), "a", "compile"});
  REQUIRE(holder.read_line() == "ready");
  auto directory = Directory::open(dir.path(), Trust::kOwn);
  REQUIRE(directory);
  Reporter reporter{Notice()};
  Turn::Patience patience;
  patience.stage = std::chrono::minutes(0);
  const Turn turn = Turn::take(
      **directory, sample_key("a").key, reporter, [] { return false; }, patience);
  CHECK(reporter.counters()["holder_stalled"] == 1);
}

TEST_CASE("when a holder could not store, those who waited do not queue", "[cache][turn]") {
  const TempDir dir;
  auto directory = Directory::open(dir.path(), Trust::kOwn);
  REQUIRE(directory);
  const Key key = sample_key("a").key;
  const auto absent = [] { return false; };
  Reporter reporter{Notice()};
  std::optional<Turn> holder(Turn::take(**directory, key, reporter, absent, {}));
  std::optional<Turn> first;
  std::optional<Turn> second;
  std::thread one([&] { first.emplace(Turn::take(**directory, key, reporter, absent, {})); });
  std::thread two([&] { second.emplace(Turn::take(**directory, key, reporter, absent, {})); });
  while (reporter.counters()["lock_waited"] < 2) std::this_thread::yield();
  holder->not_stored();
  holder.reset();
  // Both come back though neither lets go of anything.
  one.join();
  two.join();
  CHECK(reporter.counters()["lock_not_needed"] == 2);
  CHECK_FALSE(holder_of(**directory, key));
  // Whoever asks later has a turn again.
  const Turn later = Turn::take(**directory, key, reporter, absent, {});
  CHECK(holder_of(**directory, key));
}

TEST_CASE("a lock file that someone left blocks nobody", "[cache][turn]") {
  const TempDir dir;
  const Object object = sample_object("a");
  fs::create_directories(dir.path() / "locks");
  fs::permissions(dir.path() / "locks", fs::perms::owner_all);
  test::write_text(dir.path() / "locks" / object.key.key.hex(), "1 2 3 compile\n");
  Opened cache({dir.path()});
  CHECK(cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; }));
  CHECK(cache->counters()["lock_waited"] == 0);
  CHECK(test::files_in(dir.path() / "locks") == 0);
}

TEST_CASE("a lock counts only while its name leads to it", "[cache][turn]") {
  const TempDir dir;
  const Fd folder(open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto first = FileLock::try_take(folder.get(), "k");
  REQUIRE(first);
  REQUIRE(first->has_value());
  const auto second = FileLock::try_take(folder.get(), "k");
  REQUIRE(second);
  CHECK_FALSE(second->has_value());
  fs::remove(dir.path() / "k");
  // The name is free again, so a third may hold it; the first must not remove the third's file.
  const auto third = FileLock::try_take(folder.get(), "k");
  REQUIRE(third);
  CHECK(third->has_value());
  first->reset();
  CHECK(fs::exists(dir.path() / "k"));
}

TEST_CASE("locks that nobody holds are swept, held ones stay", "[cache][turn]") {
  const TempDir dir;
  const Fd folder(open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  test::write_text(dir.path() / "left", "");
  const auto held = FileLock::try_take(folder.get(), "held");
  REQUIRE(held);
  CHECK(sweep_locks(folder.get(), dir.path().string()) == 1);
  CHECK_FALSE(fs::exists(dir.path() / "left"));
  CHECK(fs::exists(dir.path() / "held"));
}

TEST_CASE("a holder whose stage always moves is not waited for without end",
          "[cache][turn][multiprocess]") {
  const TempDir dir;
  ChildProcess holder(kWorker, {"walk", dir.path().string(), "a"});
  REQUIRE(holder.read_line() == "ready");
  auto directory = Directory::open(dir.path(), Trust::kOwn);
  REQUIRE(directory);
  Reporter reporter{Notice()};
  Turn::Patience patience;
  patience.whole = std::chrono::milliseconds(200);
  const Turn turn = Turn::take(
      **directory, sample_key("a").key, reporter,
      [&] {
        holder.write_line();
        CHECK(holder.read_line() == "ready");
        return false;
      },
      patience);
  CHECK_FALSE(turn.served());
  CHECK(reporter.counters()["holder_stalled"] == 1);
}

}  // namespace broach::cache
