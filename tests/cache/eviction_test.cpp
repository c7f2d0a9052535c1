#include "cache/eviction.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "cache/file_lock.hpp"
#include "tests/cache/samples.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {

using broach::test::TempDir;
using test::object_path;
using test::Opened;
using test::sample_object;

namespace fs = std::filesystem;

namespace {

Entry entry(std::uint8_t id, std::uint64_t bytes, std::uint32_t compile_ms, std::int64_t used) {
  Entry made;
  made.key.bytes[0] = id;
  made.bytes = bytes;
  made.compile_ms = compile_ms;
  made.last_used_unix_ms = used;
  return made;
}

std::vector<int> order(std::vector<Entry> entries) {
  sort_by_eviction(entries, 1'000'000);
  std::vector<int> ids;
  for (const Entry& sorted : entries) ids.push_back(sorted.key.bytes[0]);
  return ids;
}

void fill(Opened& cache, int count) {
  for (int i = 0; i < count; ++i) cache->publish(sample_object(std::to_string(i)));
}

}  // namespace

TEST_CASE("large, old and quickly compiled objects go first", "[cache][eviction]") {
  CHECK(order({entry(1, 100, 50, 999'000), entry(2, 200, 50, 999'000)}) == std::vector<int>{2, 1});
  CHECK(order({entry(1, 100, 50, 999'000), entry(2, 100, 50, 500'000)}) == std::vector<int>{2, 1});
  CHECK(order({entry(1, 100, 500, 999'000), entry(2, 100, 50, 999'000)}) == std::vector<int>{2, 1});
  // What came from a bundle has no compile time: it is not the first to go for that.
  CHECK(order({entry(1, 100, 0, 999'000), entry(2, 100, 999, 999'000)}) == std::vector<int>{2, 1});
  // A use in the future has an order too.
  CHECK(order({entry(1, 1, 0, 2'000'000), entry(2, 9, 0, 2'000'000)}) == std::vector<int>{2, 1});
}

TEST_CASE("no more is evicted than the budget asks for", "[cache][eviction]") {
  const std::vector<Entry> sorted{entry(1, 10, 1, 1), entry(2, 20, 1, 1), entry(3, 30, 1, 1)};
  CHECK(count_to_evict(sorted, {60, 3}) == 0);
  CHECK(count_to_evict(sorted, {59, 3}) == 1);
  CHECK(count_to_evict(sorted, {60, 1}) == 2);
  CHECK(count_to_evict(sorted, {0, 3}) == 3);
}

TEST_CASE("a report removes nothing and removing does what it said", "[cache][eviction]") {
  const TempDir dir;
  Opened cache({dir.path()});
  fill(cache, 5);
  GcRequest request;
  request.object_budget = 2;
  const auto report = cache->gc(request);
  REQUIRE(report);
  CHECK(report->removed.size() == 3);
  CHECK(report->objects_left == 2);
  CHECK(cache->verify()->objects == 5);
  std::vector<Key> said;
  for (const Entry& entry : report->removed) said.push_back(entry.key);

  request.mode = GcRequest::Mode::kRemove;
  const auto removed = cache->gc(request);
  REQUIRE(removed);
  std::vector<Key> done;
  for (const Entry& entry : removed->removed) done.push_back(entry.key);
  CHECK(done == said);
  for (const Key& key : said) CHECK_FALSE(fs::exists(object_path(dir.path(), key)));
  CHECK(removed->bytes_removed == report->bytes_removed);
  CHECK(removed->bytes_left == report->bytes_left);
  CHECK(cache->verify()->objects == 2);
  CHECK(Opened({dir.path()})->entries()->size() == 2);
}

TEST_CASE("an object is removed by its key, from memory too", "[cache][eviction]") {
  const TempDir dir;
  Opened cache({dir.path()});
  fill(cache, 3);
  const Object object = sample_object("1");
  GcRequest request;
  request.keys = {object.key.key};
  request.mode = GcRequest::Mode::kRemove;
  const auto report = cache->gc(request);
  REQUIRE(report);
  REQUIRE(report->removed.size() == 1);
  CHECK(report->removed[0].key == object.key.key);
  CHECK_FALSE(cache->find(object.key));
  CHECK(cache->verify()->objects == 2);
}

TEST_CASE("publishing keeps the budget and warns when it thrashes", "[cache][eviction]") {
  const TempDir dir;
  CacheOptions options;
  options.directories = {dir.path()};
  std::vector<std::string> told;
  options.notice = [&](std::string_view line) { told.emplace_back(line); };
  SECTION("in objects") { options.object_budget = 10; }
  SECTION("in bytes") { options.byte_budget = 10 * 6000; }
  const auto cache = Cache::open(std::move(options));
  for (int i = 0; i < 40; ++i) {
    cache->publish(sample_object(std::to_string(i), 5000));
    const auto verified = cache->verify();
    REQUIRE(verified);
    CHECK(verified->objects <= 10);
    CHECK(verified->damaged == 0);
  }
  CHECK(cache->counters()["evicted"] >= 30);
  CHECK(std::count_if(told.begin(), told.end(), [](const std::string& line) {
          return line.find("too small") != std::string::npos;
        }) == 1);
}

TEST_CASE("evicting what was not used for long is no thrashing", "[cache][eviction]") {
  const TempDir dir;
  {
    Opened cache({dir.path()});
    fill(cache, 10);
  }
  for (int i = 0; i < 10; ++i) {
    const timespec times[2] = {{1'600'000'000, 0}, {0, UTIME_OMIT}};
    const fs::path path = object_path(dir.path(), sample_object(std::to_string(i)).key.key);
    REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  }
  fs::remove(dir.path() / "index.sqlite3");  // Its rows would know better.
  CacheOptions options;
  options.directories = {dir.path()};
  options.object_budget = 10;
  std::vector<std::string> told;
  options.notice = [&](std::string_view line) { told.emplace_back(line); };
  const auto cache = Cache::open(std::move(options));
  cache->publish(sample_object("new"));
  CHECK(cache->counters()["evicted"] == 2);
  CHECK(cache->counters()["budget_thrashed"] == 0);
  CHECK(told.empty());
}

TEST_CASE("an index that was lost does not unbind the budget", "[cache][eviction]") {
  const TempDir dir;
  const auto open = [&] {
    CacheOptions options;
    options.directories = {dir.path()};
    options.object_budget = 12;
    options.notice = [](std::string_view) {};
    return Cache::open(std::move(options));
  };
  const auto publish = [&](int from, int to) {
    const auto cache = open();
    for (int i = from; i < to; ++i) cache->publish(sample_object(std::to_string(i)));
  };
  publish(0, 10);
  fs::remove(dir.path() / "index.sqlite3");
  publish(10, 16);
  CHECK(open()->verify()->objects <= 12);
}

TEST_CASE("budgets are finite by default", "[cache][eviction]") {
  // Nothing that a test can fill: what is checked is that a budget of 0 does not mean none.
  const TempDir dir;
  Opened cache({dir.path()});
  fill(cache, 1);
  const auto report = cache->gc({});
  REQUIRE(report);
  CHECK(report->removed.empty());
  GcRequest none;
  none.byte_budget = 0;
  CHECK(cache->gc(none)->removed.size() == 1);
}

TEST_CASE("what another process is making is not evicted", "[cache][eviction]") {
  const TempDir dir;
  Opened cache({dir.path()});
  fill(cache, 2);
  const Object object = sample_object("1");
  fs::create_directories(dir.path() / "locks");
  const Fd folder(open((dir.path() / "locks").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto held = FileLock::try_take(folder.get(), object.key.key.hex());
  REQUIRE(held);
  REQUIRE(held->has_value());
  (*held)->write("1 1 1 compile\n");
  GcRequest request;
  request.byte_budget = 0;
  request.mode = GcRequest::Mode::kRemove;
  CHECK(cache->gc(request)->removed.size() == 1);
  CHECK(fs::exists(object_path(dir.path(), object.key.key)));
}

TEST_CASE("a hit in a read-only layer is promoted when the cache closes", "[cache][eviction]") {
  const TempDir image;
  const TempDir home;
  const Object object = sample_object("a");
  Opened({image.path()})->publish(object);
  {
    Opened cache({home.path()}, {image.path()});
    REQUIRE(cache->find(object.key));
    CHECK_FALSE(fs::exists(object_path(home.path(), object.key.key)));
  }
  Opened cache({home.path()});
  const auto hit = cache->find(object.key);
  REQUIRE(hit);
  CHECK(hit->layer.kind == LayerKind::kUser);
  CHECK(*hit->object == object);
}

TEST_CASE("a budget leaves a reserve of the file system's bytes and inodes", "[cache][eviction]") {
  const Budget wide{std::uint64_t{1} << 40, 1'000'000};
  const Usage used{1000, 50'000'000};
  const auto same = [](const Budget& a, const Budget& b) {
    return a.bytes == b.bytes && a.objects == b.objects;
  };
  SECTION("what is not stated bounds nothing") {
    CHECK(same(within_free_space(wide, used, {}), wide));
  }
  SECTION("an empty disk bounds nothing that the cache would want") {
    const Budget small{1'000'000'000, 2000};
    const FreeSpace empty{std::uint64_t{1} << 40, std::uint64_t{1} << 40, 1 << 24, 1 << 24};
    CHECK(same(within_free_space(small, used, empty), small));
  }
  SECTION("a small disk keeps a twentieth") {
    const FreeSpace small{10'000'000, 100'000'000, 300, 2000};
    const Budget fitting = within_free_space(wide, used, small);
    CHECK(fitting.bytes == 50'000'000 + 10'000'000 - 5'000'000);
    CHECK(fitting.objects == 1000 + 300 - 100);
  }
  SECTION("a large one no more than 256 MiB and 4,096 files") {
    const FreeSpace large{std::uint64_t{1} << 30, std::uint64_t{1} << 44, 10'000, 1 << 28};
    const Budget fitting = within_free_space(wide, used, large);
    CHECK(fitting.bytes == 50'000'000 + (std::uint64_t{1} << 30) - (std::uint64_t{256} << 20));
    CHECK(fitting.objects == 1000 + 10'000 - 4096);
  }
  SECTION("a full one asks for the reserve back, and never for more than there is") {
    const FreeSpace full{0, 100'000'000, 0, 100'000};
    const Budget fitting = within_free_space(wide, used, full);
    CHECK(fitting.bytes == 45'000'000);
    CHECK(fitting.objects == 0);
  }
}

TEST_CASE("eviction removes objects and never their folders", "[cache][eviction]") {
  const TempDir dir;
  Opened cache({dir.path()});
  fill(cache, 20);
  const std::size_t shelves = test::files_in(dir.path() / "objects");
  GcRequest all;
  all.object_budget = 0;
  all.mode = GcRequest::Mode::kRemove;
  const auto report = cache->gc(all);
  REQUIRE(report);
  CHECK(report->removed.size() == 20);
  // On a network file system a folder that is removed may be the one that another process, or a
  // file that is open there, still needs.
  CHECK(test::files_in(dir.path() / "objects") == shelves);
  for (const char* folder : {"objects", "tmp", "locks"})
    CHECK(fs::is_directory(dir.path() / folder));
}

TEST_CASE("what is evicted while it is used stays usable", "[cache][eviction]") {
  const TempDir dir;
  Opened({dir.path()})->publish(sample_object("a"));
  Opened user({dir.path()});
  const auto hit = user->find(sample_object("a").key);
  REQUIRE(hit);
  GcRequest all;
  all.object_budget = 0;
  all.mode = GcRequest::Mode::kRemove;
  Opened other({dir.path()});
  REQUIRE(other->gc(all));
  CHECK_FALSE(fs::exists(object_path(dir.path(), sample_object("a").key.key)));
  CHECK(*hit->object == sample_object("a"));
  CHECK(user->find(sample_object("a").key));  // From memory.
  CHECK_FALSE(other->find(sample_object("a").key));
}

}  // namespace broach::cache
