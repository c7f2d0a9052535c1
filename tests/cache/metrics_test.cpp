#include "cache/metrics.hpp"

#include <set>
#include <thread>
#include <vector>

#include "tests/cache/samples.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {

using broach::test::TempDir;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using test::Opened;
using test::sample_object;

TEST_CASE("a duration falls into the first bucket whose bound it does not pass",
          "[cache][metrics]") {
  CHECK(bucket_of(nanoseconds(-5)) == 0);
  CHECK(bucket_of(nanoseconds(0)) == 0);
  CHECK(bucket_of(nanoseconds(1)) == 0);
  for (std::size_t i = 0; i + 1 < kDurationBuckets; ++i) {
    const microseconds bound(std::int64_t{1} << i);
    CHECK(bucket_of(bound) == i);
    CHECK(bucket_of(bound + nanoseconds(1)) == i + 1);
  }
  CHECK(bucket_of(nanoseconds::max()) == kDurationBuckets - 1);
}

TEST_CASE("every timing has words of its own", "[cache][metrics]") {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < kTimings; ++i) {
    const TimingName name = name_of(static_cast<Timing>(i));
    CHECK_FALSE(name.operation.empty());
    CHECK_FALSE(name.cause.empty());
    CHECK(seen.insert(std::string(name.operation) + "/" + std::string(name.cause)).second);
  }
}

TEST_CASE("recording from many threads at once loses nothing", "[cache][metrics]") {
  Metrics metrics;
  constexpr int kThreads = 4;
  constexpr int kEach = 10'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) metrics.record(Timing::kLoadDone, microseconds(i % 3));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Durations reading = metrics.read(Timing::kLoadDone);
  CHECK(reading.count() == kThreads * kEach);
  // 0 and 1 us share the first bucket, 2 us has the second.
  CHECK(reading.buckets[0] == kThreads * (kEach - kEach / 3));
  CHECK(reading.buckets[1] == kThreads * (kEach / 3));
  CHECK(reading.sum_ns == kThreads * (kEach / 3) * std::uint64_t{3000});
  CHECK(metrics.read(Timing::kLoadRefused).count() == 0);
}

TEST_CASE("look-ups are timed by the layer that served and publishes by their end",
          "[cache][metrics]") {
  const TempDir user;
  const TempDir image;
  Opened({image.path()})->publish(sample_object("shipped"));
  Opened({user.path()})->publish(sample_object("own"));
  Opened cache({user.path()}, {image.path()});
  const auto count = [&](Timing timing) { return cache->metrics().read(timing).count(); };
  REQUIRE(cache->find(sample_object("own").key));
  REQUIRE(cache->find(sample_object("own").key));
  REQUIRE(cache->find(sample_object("shipped").key));
  REQUIRE_FALSE(cache->find(sample_object("none").key));
  cache->publish(sample_object("new"));
  CHECK(count(Timing::kLookUpUser) == 1);
  CHECK(count(Timing::kLookUpMemory) == 1);
  CHECK(count(Timing::kLookUpReadOnly) == 1);
  CHECK(count(Timing::kLookUpMiss) == 1);
  CHECK(count(Timing::kPublishStored) == 1);
  CHECK(count(Timing::kPublishNotStored) == 0);
  CHECK(count(Timing::kWaitProcess) == 0);
  CHECK(cache->metrics().read(Timing::kPublishStored).sum_ns > 0);
}

TEST_CASE("a publish that the disk refuses is timed as not stored", "[cache][metrics]") {
  const TempDir dir;
  Opened cache({dir.path()});
  test::write_text(dir.path() / "objects", "in the folder's place");
  cache->publish(sample_object("a"));
  CHECK(cache->metrics().read(Timing::kPublishNotStored).count() == 1);
  CHECK(cache->metrics().read(Timing::kPublishStored).count() == 0);
}

TEST_CASE("waiting for another thread's compile is timed", "[cache][metrics]") {
  const TempDir dir;
  Opened cache({dir.path()});
  const Object object = sample_object("a");
  std::thread second;
  const auto made = cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> {
    second = std::thread([&] {
      const auto hit =
          cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; });
      CHECK(hit.ok());
    });
    // The other thread has missed, and then it joins or finds what is made here.
    while (cache->metrics().read(Timing::kLookUpMiss).count() < 2) std::this_thread::yield();
    return object;
  });
  second.join();
  CHECK(made.ok());
  const std::uint64_t waited = cache->metrics().read(Timing::kWaitThread).count();
  CHECK(waited == cache->counters()["joined"]);
}

}  // namespace broach::cache
