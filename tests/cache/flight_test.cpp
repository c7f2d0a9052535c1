#include "cache/flight.hpp"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>

#include "tests/cache/samples.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {

using broach::test::TempDir;
using test::Opened;
using test::sample_object;

TEST_CASE("threads that ask for one key share one compile", "[cache][flight]") {
  const TempDir dir;
  const bool on_disk = GENERATE(true, false);
  Opened cache(on_disk ? std::vector<std::filesystem::path>{dir.path()}
                       : std::vector<std::filesystem::path>{});
  const Object object = sample_object("a");
  constexpr int kThreads = 12;
  std::atomic<int> compiles = 0;
  std::atomic<int> right = 0;
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      const auto hit = cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> {
        ++compiles;
        return object;
      });
      if (hit && *hit->object == object) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(compiles == 1);
  CHECK(right == kThreads);
  CHECK(cache->counters()["made"] == 1);
}

TEST_CASE("a maker's error reaches everyone who asked", "[cache][flight]") {
  Opened cache({});
  const Error refused{ErrorCode::kCompilerMissing, "no compiler", "tried: none"};
  for (int i = 0; i < 2; ++i) {
    const auto hit = cache->find_or_make(test::sample_key("a"),
                                         [&](const Stage&) -> Result<Object> { return refused; });
    REQUIRE_FALSE(hit);
    CHECK(hit.error().code == ErrorCode::kCompilerMissing);
  }
  // A missing compiler may be installed: it is not remembered.
  CHECK(cache->counters()["made"] == 2);
}

TEST_CASE("what a maker throws is an error, and the key can be asked for again",
          "[cache][flight]") {
  const TempDir dir;
  Opened cache({dir.path()});
  const Object object = sample_object("a");
  const auto thrown = cache->find_or_make(object.key, [](const Stage&) -> Result<Object> {
    throw std::runtime_error("the maker's trouble");
  });
  REQUIRE_FALSE(thrown);
  CHECK(thrown.error().code == ErrorCode::kInternal);
  CHECK(thrown.error().message.find("the maker's trouble") != std::string::npos);
  CHECK(cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; }));
  CHECK(test::files_in(dir.path() / "locks") == 0);
}

TEST_CASE("a maker that returns another key's object is a defect, not a hit", "[cache][flight]") {
  Opened cache({});
  const auto wrong = cache->find_or_make(
      test::sample_key("a"), [](const Stage&) -> Result<Object> { return sample_object("b"); });
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ErrorCode::kInternal);
  CHECK_FALSE(cache->find(test::sample_key("a")));
}

}  // namespace broach::cache
