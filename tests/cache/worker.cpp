// A process of its own for tests: one command a run, "ready" on standard output before it waits.
#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <thread>

#include "tests/cache/samples.hpp"

namespace broach::cache {
namespace {

std::unique_ptr<Cache> open_cache(const std::string& directory, std::uint64_t object_budget = 0) {
  CacheOptions options;
  options.directories = {directory};
  options.object_budget = object_budget;
  return Cache::open(std::move(options));
}

void ready() { std::cout << "ready" << std::endl; }

void wait_for_line() {
  std::string line;
  std::getline(std::cin, line);
}

// Appends one line at once, so that lines of many processes do not mix.
void note(const std::string& path, const std::string& line) {
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  close(fd);
}

// make DIR NAME MS LOG: asks for one key; a compile takes MS and leaves a line in LOG.
int make(const std::string& directory, const std::string& name, int ms, const std::string& log) {
  const auto cache = open_cache(directory);
  const Object object = test::sample_object(name);
  ready();
  wait_for_line();
  const auto hit = cache->find_or_make(object.key, [&](const Stage& stage) -> Result<Object> {
    stage("compile");
    note(log, std::to_string(getpid()) + "\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return object;
  });
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const bool right = hit && *hit->object == object;
  std::cout << (right ? "right " : "wrong ")
            << std::chrono::duration_cast<std::chrono::microseconds>(now).count() << std::endl;
  return right ? 0 : 3;
}

// wait DIR NAME: asks for one key that another process makes; "ready" once it waits for it.
int wait(const std::string& directory, const std::string& name) {
  const auto cache = open_cache(directory);
  std::thread watcher([&] {
    while (cache->counters()["lock_waited"] == 0) std::this_thread::yield();
    ready();
  });
  const Object object = test::sample_object(name);
  const auto hit =
      cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; });
  watcher.join();
  return hit && *hit->object == object ? 0 : 3;
}

// fail DIR NAME LOG: as make, with a compiler that refuses.
int fail(const std::string& directory, const std::string& name, const std::string& log) {
  const auto cache = open_cache(directory);
  ready();
  wait_for_line();
  const auto hit = cache->find_or_make(test::sample_key(name), [&](const Stage&) -> Result<Object> {
    note(log, std::to_string(getpid()) + "\n");
    return Error{ErrorCode::kCompileFailed, "does not compile", "the log"};
  });
  return !hit && hit.error().code == ErrorCode::kCompileFailed ? 0 : 3;
}

// hold DIR NAME STAGE: takes the key's turn and stays in STAGE.
int hold(const std::string& directory, const std::string& name, const std::string& at) {
  const auto cache = open_cache(directory);
  (void)cache->find_or_make(test::sample_key(name), [&](const Stage& stage) -> Result<Object> {
    stage(at);
    ready();
    for (;;) pause();
  });
  return 0;
}

// fleet-hold DIR NAME URL KEY: takes the key's turn in a fleet and keeps it.
int fleet_hold(const std::string& directory, const std::string& name, const std::string& url,
               const std::string& signing_key) {
  CacheOptions options;
  options.directories = {directory};
  options.signing_key = signing_key;
  RemoteOptions remote;
  remote.url = url;
  remote.first_byte = std::chrono::seconds(30);
  options.remotes = {remote};
  const auto cache = Cache::open(std::move(options));
  (void)cache->find_or_make(test::sample_key(name), [&](const Stage& stage) -> Result<Object> {
    stage("compile");
    ready();
    for (;;) pause();
  });
  return 0;
}

// walk DIR NAME: takes the key's turn and goes to another stage at each line.
int walk(const std::string& directory, const std::string& name) {
  const auto cache = open_cache(directory);
  (void)cache->find_or_make(test::sample_key(name), [&](const Stage& stage) -> Result<Object> {
    for (int step = 0; std::cin; ++step) {
      stage("step " + std::to_string(step));
      ready();
      wait_for_line();
    }
    return Error{ErrorCode::kIo, "the test ended", ""};
  });
  return 0;
}

// Stores, reads and evicts for a while; false when what was read was wrong.
bool churn_round(const std::string& directory, std::mt19937& random) {
  const auto cache = open_cache(directory, 24);
  for (int i = 0; i < 50; ++i) {
    const std::string name = "churn" + std::to_string(random() % 32);
    const Object object = test::sample_object(name, 1000 + 7919 * (random() % 4 == 0));
    const auto hit = cache->find(object.key);
    if (hit) {
      const std::size_t bytes = hit->object->payload.size() == 1000 ? 1000 : 8919;
      if (*hit->object != test::sample_object(name, bytes)) return false;
    }
    if (!hit) {
      // Under the key's lock, where a kill leaves what it leaves.
      const auto made = cache->find_or_make(object.key, [&](const Stage& stage) -> Result<Object> {
        stage("compile");
        return object;
      });
      if (!made || made->object->key != object.key) return false;
    }
    if (random() % 4 == 0) cache->publish(object);
    if (random() % 16 == 0) {
      GcRequest request;
      request.keys = {object.key.key};
      request.mode = GcRequest::Mode::kRemove;
      (void)cache->gc(request);
    }
    if (random() % 16 == 0) (void)cache->entries();
  }
  return true;
}

// churn DIR SEED: until it is killed; what it reads must be right.
int churn(const std::string& directory, unsigned seed) {
  std::mt19937 random(seed);
  ready();
  while (churn_round(directory, random)) continue;
  return 3;
}

// churn-once DIR
int churn_once(const std::string& directory) {
  std::mt19937 random(1);
  ready();
  return churn_round(directory, random) ? 0 : 3;
}

// lock-index FILE: keeps an SQLite file locked against everyone until a line comes.
int lock_index(const std::string& file) {
  SQLite::Database database(file, SQLite::OPEN_READWRITE);
  database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE held (x); ");
  ready();
  wait_for_line();
  database.exec("ROLLBACK");
  return 0;
}

int run(int argc, char* argv[]) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 5 && words[0] == "make") {
    return make(words[1], words[2], std::stoi(words[3]), words[4]);
  }
  if (words.size() == 3 && words[0] == "wait") return wait(words[1], words[2]);
  if (words.size() == 4 && words[0] == "fail") return fail(words[1], words[2], words[3]);
  if (words.size() == 4 && words[0] == "hold") return hold(words[1], words[2], words[3]);
  if (words.size() == 5 && words[0] == "fleet-hold") {
    return fleet_hold(words[1], words[2], words[3], words[4]);
  }
  if (words.size() == 3 && words[0] == "walk") return walk(words[1], words[2]);
  if (words.size() == 3 && words[0] == "churn") {
    return churn(words[1], static_cast<unsigned>(std::stoul(words[2])));
  }
  if (words.size() == 2 && words[0] == "churn-once") return churn_once(words[1]);
  if (words.size() == 2 && words[0] == "lock-index") return lock_index(words[1]);
  std::cerr << "cache_worker: unknown command\n";
  return 2;
}

}  // namespace
}  // namespace broach::cache

int main(int argc, char* argv[]) { return broach::cache::run(argc, argv); }
