// Storage that fails: injected errors at every system call, and file systems that are really full.
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cache/fault_calls.hpp"
#include "tests/cache/remote/live_server.hpp"
#include "tests/cache/remote/machine.hpp"
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

/// A tmpfs of its own, absent where this user may not mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& options)
      : mounted_(mount("none", dir_.path().c_str(), "tmpfs", 0, (options + ",mode=0700").c_str()) ==
                 0) {}
  ~SmallDisk() {
    if (mounted_) umount2(dir_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const fs::path& path() const { return dir_.path(); }
  bool remount(const std::string& options) const {
    return mount("none", dir_.path().c_str(), "tmpfs", MS_REMOUNT, options.c_str()) == 0;
  }

 private:
  TempDir dir_;
  bool mounted_;
};

std::string name_of(int i) { return std::to_string(i); }

}  // namespace

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kWatchesThreads = true;
#else
constexpr bool kWatchesThreads = false;
#endif
constexpr const char* kOneThread =
    "a trial has one thread, in which the thread sanitizer finds nothing, and there are thousands";

/// The trials of one kind of call, in a process of their own.
class Trials {
 public:
  Trials(const std::string& what, std::string call, const std::string& url)
      : call_(std::move(call)), worker_(BROACH_CACHE_FAULT_WORKER, words(what, url)) {}

  /// How often it happened; waits for the end, which must be a good one.
  int end() {
    const std::string happened = worker_.read_line();
    INFO("at " << call_ << ": " << happened);
    CHECK(worker_.wait() == 0);
    return happened.empty() ? 0 : std::stoi(happened);
  }

 private:
  std::vector<std::string> words(const std::string& what, const std::string& url) const {
    std::vector<std::string> words = {dir_.path().string(), what, call_};
    if (!url.empty()) words.push_back(url);
    return words;
  }

  // In memory where that is possible: the trials are many and each of them syncs.
  static fs::path folder() {
    const fs::path memory = "/dev/shm";
    return access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
  }

  TempDir dir_{folder()};
  std::string call_;
  ChildProcess worker_;
};

// Lets something happen at every call of these kinds, a process a core; returns how often it did.
std::map<std::string, int> try_calls(const std::string& what,
                                     std::span<const std::string_view> calls,
                                     const std::string& url = "") {
  const std::size_t at_once = std::max(1U, std::thread::hardware_concurrency());
  std::map<std::string, int> happened;
  std::deque<std::pair<std::string, std::unique_ptr<Trials>>> running;
  const auto end_first = [&] {
    happened[running.front().first] = running.front().second->end();
    running.pop_front();
  };
  for (const std::string_view call : calls) {
    if (running.size() >= at_once) end_first();
    running.emplace_back(call, std::make_unique<Trials>(what, std::string(call), url));
  }
  while (!running.empty()) end_first();
  return happened;
}

// Rarely used calls may not occur at all; those that the cache is made of must.
void check_needed(const std::map<std::string, int>& happened) {
  constexpr std::string_view kNeeded[] = {"openat",  "mkdirat", "pread",    "write",
                                          "fsync",   "flock",   "renameat", "fstat",
                                          "fstatat", "fcntl",   "readdir"};
  for (const auto& [call, count] : happened) {
    INFO(call);
    if (std::find(std::begin(kNeeded), std::end(kNeeded), call) != std::end(kNeeded)) {
      CHECK(count > 0);
    }
  }
}

}  // namespace

TEST_CASE("no failing system call fails a request or leaves damage", "[cache][fault]") {
  if (kWatchesThreads) BROACH_SKIP(kOneThread);
  check_needed(try_calls("errors", test::kFaultyCalls));
}

TEST_CASE("no failing system call of a layer, a bundle, a signature or an export does harm",
          "[cache][fault]") {
  if (kWatchesThreads) BROACH_SKIP(kOneThread);
  auto happened = try_calls("layers", test::kFaultyCalls);
  happened.erase("fcntl");  // Only the index's, which waits at each: left to the case above.
  check_needed(happened);
}

TEST_CASE("no failing system call on the way to a remote does harm", "[cache][fault][remote]") {
  const std::string scheme = GENERATE("redis", "http");
  const auto server =
      scheme == "http" ? remote::test::LiveServer::nginx() : remote::test::LiveServer::redis();
  if (!server) BROACH_SKIP("no nginx, or no redis-server, on this machine");
  {
    const auto maker = remote::test::Machine().with_remote(server->url(scheme)).open();
    REQUIRE(remote::test::ask(*maker, sample_object("made")));
    REQUIRE(maker->drain_uploads(std::chrono::seconds(60)));
  }
  int faults = 0;
  for (const auto& [call, count] : try_calls("remote", test::kNetworkCalls, server->url(scheme))) {
    faults += count;
  }
  CHECK(faults > 100);
}

TEST_CASE("a process that is killed at any system call leaves a cache that works",
          "[cache][fault][crash]") {
  check_needed(try_calls("kills", test::kFaultyCalls));
}

TEST_CASE("a cache whose directory vanishes at any system call goes on", "[cache][fault]") {
  check_needed(try_calls("vanishing", test::kFaultyCalls));
}

TEST_CASE("a link that is planted while a cache is used is not followed", "[cache][fault]") {
  constexpr std::string_view kCalls[] = {"open", "openat", "renameat"};
  for (const auto& [call, count] : try_calls("planted", kCalls)) CHECK(count > 0);
}

TEST_CASE("a clock that is set back fails no request and forgets nothing", "[cache][fault]") {
  constexpr std::string_view kNone[] = {"-"};
  CHECK(try_calls("clock", kNone)["-"] == 3);
}

TEST_CASE("the fault trials notice a broken promise", "[cache][fault]") {
  const TempDir dir;
  ChildProcess worker(BROACH_CACHE_FAULT_WORKER, {dir.path().string(), "self-test", "-"});
  CHECK(worker.wait() == 1);
}

TEST_CASE("a full disk costs nothing but the storing", "[cache][fault]") {
  const std::string limit = GENERATE("size=256k", "nr_inodes=12");
  const SmallDisk disk(limit);
  if (!disk.mounted()) BROACH_SKIP("mounting a tmpfs needs root");
  // Others' bytes: nothing that the cache could evict makes room.
  if (limit == "size=256k") test::write_text(disk.path() / "filler", std::string(230'000, 'x'));
  Opened cache({disk.path() / "cache"});
  for (int i = 0; i < 100; ++i) {
    const Object object = sample_object(name_of(i), 20'000);
    const auto hit =
        cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; });
    REQUIRE(hit);
    REQUIRE(*hit->object == object);
  }
  CHECK(cache->counters()["store_failed_enospc"] > 0);
  CHECK(cache.told("No space left on device"));
  CHECK(std::count_if(cache.notices->begin(), cache.notices->end(), [](const std::string& line) {
          return line.find("kept in memory only") != std::string::npos;
        }) == 1);
  for (int i = 0; i < 100; ++i) CHECK(cache->find(sample_object(name_of(i), 20'000).key));
  CHECK(cache->verify()->damaged == 0);
  CHECK(test::files_in(disk.path() / "cache" / "tmp") == 0);

  // Room again: storing goes on in the same process.
  REQUIRE(disk.remount("size=8m,nr_inodes=1000"));
  const std::uint64_t before = cache->counters()["published"];
  cache->publish(sample_object("later"));
  CHECK(cache->counters()["published"] == before + 1);
}

TEST_CASE("a small file system is never filled up", "[cache][fault]") {
  // 256 of the inodes go to folders; a twentieth of all must stay free.
  const std::string limit = GENERATE("size=64m,nr_inodes=400", "size=16m");
  const SmallDisk disk(limit);
  if (!disk.mounted()) BROACH_SKIP("mounting a tmpfs needs root");
  Opened cache({disk.path() / "cache"});
  for (int i = 0; i < 300; ++i) cache->publish(sample_object(name_of(i), 100'000));
  CHECK(cache->counters()["store_failed"] == 0);
  CHECK(cache->counters()["evicted"] > 0);
  CHECK(cache.told("which its file system's free space bounds"));
  CHECK(cache->verify()->damaged == 0);
}

TEST_CASE("a user without a home, and a stranger in every directory, is told once and served",
          "[cache][fault]") {
  const pid_t child = fork();
  if (child == 0) {
    // A random user of a container: no name, HOME=/, and the root directory is root's.
    if (geteuid() == 0 && (setgid(54'321) != 0 || setuid(54'321) != 0)) _exit(10);
    Opened cache({"/.cache/broach"});
    const Object object = sample_object("a");
    int made = 0;
    for (int i = 0; i < 3; ++i) {
      const auto hit = cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> {
        ++made;
        return object;
      });
      if (!hit || *hit->object != object) _exit(11);
    }
    if (made != 1) _exit(12);
    // One line for the directory, one that says what follows from it.
    if (cache.notices->size() != 2 || !cache.told("kept in memory only")) _exit(13);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 10) BROACH_SKIP("this machine does not let a process change its user");
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a cache writes nothing outside its directory", "[cache][fault]") {
  const TempDir dir;
  const TempDir elsewhere;
  const std::string other = elsewhere.path().string();
  ChildProcess worker("/usr/bin/env",
                      {"--chdir", other, "TMPDIR=" + other, "SQLITE_TMPDIR=" + other,
                       "HOME=" + other, BROACH_CACHE_WORKER, "churn-once", dir.path().string()});
  CHECK(worker.read_line() == "ready");
  CHECK(worker.wait() == 0);
  CHECK(test::files_in(dir.path()) > 2);
  CHECK(test::files_in(elsewhere.path()) == 0);
}

TEST_CASE("a disk that is full from the start is memory only", "[cache][fault]") {
  const SmallDisk disk("size=16k");
  if (!disk.mounted()) BROACH_SKIP("mounting a tmpfs needs root");
  test::write_text(disk.path() / "filler", std::string(16'384, 'x'));
  Opened cache({disk.path() / "cache"});
  const Object object = sample_object("a");
  CHECK(cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; }));
  CHECK(cache->find(object.key));
  CHECK(cache.notices->size() <= 2);
}

TEST_CASE("a read-only root serves what is on it and keeps the rest in memory, said once",
          "[cache][fault]") {
  const bool filled = GENERATE(true, false);
  const SmallDisk disk("size=1m");
  if (!disk.mounted()) BROACH_SKIP("mounting a tmpfs needs root");
  const fs::path home = disk.path() / "home" / ".cache" / "broach";
  const Object before = sample_object("before");
  if (filled) Opened({home})->publish(before);
  REQUIRE(mount("none", disk.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0);
  Opened cache({home});
  CHECK(cache->find(before.key).has_value() == filled);
  for (int i = 0; i < 3; ++i) {
    const Object object = sample_object(name_of(i));
    CHECK(cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; }));
    CHECK(cache->find(object.key));
  }
  (void)cache->entries();
  // One line for the directory, one that says what follows from it.
  CHECK(cache.notices->size() == 2);
  CHECK(cache.told("Read-only file system"));
  CHECK(cache.told("kept in memory only"));
}

TEST_CASE("a file system that turns read-only while it is used is read", "[cache][fault]") {
  const SmallDisk disk("size=1m");
  if (!disk.mounted()) BROACH_SKIP("mounting a tmpfs needs root");
  const Object before = sample_object("before");
  Opened({disk.path()})->publish(before);
  Opened cache({disk.path()});
  REQUIRE(cache->find(before.key));
  REQUIRE(mount("none", disk.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0);
  for (int i = 0; i < 3; ++i) {
    const Object object = sample_object(name_of(i));
    CHECK(cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; }));
  }
  CHECK(cache->counters()["store_failed_erofs"] == 1);
  CHECK(cache.told("Read-only file system"));
  CHECK(Opened({disk.path()})->find(before.key));
}

}  // namespace broach::cache
