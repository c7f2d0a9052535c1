// What is left when processes are killed at any instant.
#include <random>

#include "tests/cache/samples.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {

using broach::test::ChildProcess;
using broach::test::TempDir;
using test::Opened;

namespace fs = std::filesystem;

namespace {

// What is killed is fixed; the instant is not, as the machine schedules at will.
constexpr unsigned kSeed = 7;

ChildProcess start_churn(const fs::path& dir, unsigned seed) {
  return ChildProcess(BROACH_CACHE_WORKER, {"churn", dir.string(), std::to_string(seed)});
}

// Kills `kills` of 8 processes that store, read and evict, each at a random instant of its work.
void kill_at_random(const fs::path& dir, int kills, unsigned seed) {
  constexpr std::size_t kProcesses = 8;
  std::mt19937 random(seed);
  std::vector<ChildProcess> workers;
  for (unsigned i = 0; i < kProcesses; ++i) workers.push_back(start_churn(dir, seed + i));
  for (int i = 0; i < kills; ++i) {
    ChildProcess& victim = workers[random() % workers.size()];
    CHECK(victim.read_line() == "ready");
    // Some work first: the instant of the kill is what is random.
    usleep(static_cast<useconds_t>(random() % 20'000));
    victim.signal(SIGKILL);
    // Status 3 would be a process that read wrong bytes before it could be killed.
    CHECK(victim.wait() == -SIGKILL);
    victim = start_churn(dir, static_cast<unsigned>(random()));
  }
  for (ChildProcess& worker : workers) {
    worker.signal(SIGKILL);
    CHECK(worker.wait() == -SIGKILL);
  }
}

void check_what_is_left(const fs::path& dir) {
  Opened cache({dir});
  const auto report = cache->verify();
  REQUIRE(report);
  CHECK(report->damaged == 0);
  CHECK(report->objects > 0);
  const auto aside = cache->quarantine();
  REQUIRE(aside);
  for (const QuarantineRow& row : *aside) UNSCOPED_INFO(row.name << ": " << row.why);
  CHECK(aside->empty());
  const auto entries = cache->entries();
  REQUIRE(entries);
  CHECK(entries->size() == report->objects);
  GcRequest sweep;
  sweep.mode = GcRequest::Mode::kRemove;
  REQUIRE(cache->gc(sweep));
  CHECK(test::files_in(dir / "tmp") == 0);
  CHECK(test::files_in(dir / "locks") == 0);
}

}  // namespace

TEST_CASE("killing writers at random leaves whole objects only", "[cache][crash][multiprocess]") {
  const TempDir dir;
  kill_at_random(dir.path(), 60, kSeed);
  check_what_is_left(dir.path());
}

TEST_CASE("a thousand random kills leave whole objects only",
          "[cache][crash][multiprocess][slow]") {
  const TempDir dir;
  kill_at_random(dir.path(), 1000, kSeed);
  check_what_is_left(dir.path());
}

TEST_CASE("a process that reads wrong bytes would be noticed", "[cache][crash][multiprocess]") {
  // The churn's own check must be able to fail: an object that checks out and holds other bytes.
  const TempDir dir;
  for (int i = 0; i < 32; ++i) {
    Object object = test::sample_object(std::string("churn").append(std::to_string(i)), 1000);
    object.payload[500] ^= std::byte{1};
    Opened({dir.path()})->publish(object);
  }
  ChildProcess worker = start_churn(dir.path(), 1);
  CHECK(worker.read_line() == "ready");
  CHECK(worker.wait() == 3);
}

}  // namespace broach::cache
