// How long a look-up takes in stores of growing size: from memory, from disk, and in a process that
// has just begun; and how late the last of many processes gets a binary that one of them compiles.
// Prints one JSON object; progress goes to standard error. Exit status 1 when anything was not
// found or was compiled more than once.
//   cache_bench [--directory DIR] [--objects N] [--processes N] [--compile-ms MS] [--payload BYTES]
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/cache.hpp"

namespace broach::cache {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr int kLookUps = 2000;
constexpr int kNextProcesses = 40;
// What all memory layers hold in this process must fit its budget of bytes.
constexpr std::uint64_t kMostInMemory = 100'000;

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

KeyRecord numbered_key(std::uint64_t number) {
  return KeyBuilder().field("family", "bench").field("number", number).finish();
}

Object numbered_object(std::uint64_t number, std::size_t payload_bytes) {
  Object object;
  object.key = numbered_key(number);
  object.description.family = "bench";
  object.provenance.compile_ms = 100;
  std::mt19937_64 random(number);
  object.payload.resize(payload_bytes);
  for (std::byte& byte : object.payload) byte = static_cast<std::byte>(random() & 0xff);
  return object;
}

std::unique_ptr<Cache> open_cache(const fs::path& dir) {
  CacheOptions options;
  options.directories = {dir};
  options.object_budget = UINT32_MAX;
  options.byte_budget = UINT64_MAX;
  return Cache::open(std::move(options));
}

// Puts objects in place without the syncs of a publish, which are not what is measured. Shelf by
// shelf: a million names in random order would touch every folder's blocks over and over.
bool fill(const fs::path& dir, std::uint64_t from, std::uint64_t to, std::size_t payload_bytes) {
  std::vector<std::pair<Key, std::uint64_t>> numbers;
  for (std::uint64_t i = from; i < to; ++i) numbers.emplace_back(numbered_key(i).key, i);
  std::sort(numbers.begin(), numbers.end());
  Object object = numbered_object(0, payload_bytes);
  for (const auto& [key, number] : numbers) {
    object.key = numbered_key(number);
    const std::string hex = key.hex();
    const fs::path folder = dir / "objects" / hex.substr(0, 2);
    std::error_code failed;
    fs::create_directories(folder, failed);
    const std::vector<std::byte> bytes = encode(object);
    const int fd = open((folder / hex).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const bool written =
        fd >= 0 && write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (fd >= 0) close(fd);
    if (!written) return false;
  }
  return true;
}

Json percentiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {{"median_us", at(0.5)}, {"p99_us", at(0.99)}, {"max_us", values.back()}};
}

// Each look-up is the first of its key in a cache that was just opened: from disk to bytes.
Json look_ups(const fs::path& dir, std::uint64_t objects) {
  std::mt19937_64 random(objects);
  std::vector<double> hits;
  std::vector<double> misses;
  std::vector<double> memory;
  std::uint64_t found = 0;
  const auto cache = open_cache(dir);
  for (int i = 0; i < kLookUps; ++i) {
    const KeyRecord present = numbered_key(random() % objects);
    const KeyRecord absent = numbered_key(objects + random() % objects);
    const auto start = Clock::now();
    const auto hit = cache->find(present);
    const auto middle = Clock::now();
    found += hit ? 1U : 0U;
    if (hit && hit->layer.kind == LayerKind::kUser) hits.push_back(microseconds(middle - start));
    const auto before_miss = Clock::now();
    (void)cache->find(absent);
    misses.push_back(microseconds(Clock::now() - before_miss));
    const auto again = Clock::now();
    (void)cache->find(present);
    memory.push_back(microseconds(Clock::now() - again));
  }
  return {{"objects", objects},
          {"found", found},
          {"disk_hit", percentiles(hits)},
          {"miss", percentiles(misses)},
          {"memory_hit", percentiles(memory)}};
}

// The whole of a process that looks one key up: opens the cache, reads the object, checks it.
// Writes microseconds, or nothing when the object was not there.
int look_up_once(const fs::path& dir, std::uint64_t number) {
  const auto start = Clock::now();
  const auto cache = open_cache(dir);
  const auto hit = cache->find(numbered_key(number));
  const double took = microseconds(Clock::now() - start);
  if (!hit || hit->layer.kind != LayerKind::kUser) return 1;
  std::cout << took << '\n';
  return 0;
}

// What a program writes to its standard output; empty when it fails.
std::string output_of(std::vector<std::string> words) {
  int channel[2];
  if (pipe2(channel, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, channel[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const bool started =
      posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(channel[1]);
  std::string text;
  char part[256];
  for (ssize_t got = 0; started && (got = read(channel[0], part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  close(channel[0]);
  int status = 1;
  if (started) waitpid(child, &status, 0);
  return status == 0 ? text : "";
}

Json next_processes(const fs::path& dir, std::uint64_t objects) {
  std::mt19937_64 random(objects + 1);
  std::vector<double> times;
  for (int i = 0; i < kNextProcesses; ++i) {
    const std::string took =
        output_of({"cache_bench", "--look-up", dir.string(), std::to_string(random() % objects)});
    if (!took.empty()) times.push_back(std::stod(took));
  }
  Json row = {{"found", times.size()}};
  if (!times.empty()) row.update(percentiles(times));
  return row;
}

// Look-ups in a memory layer that holds this many objects.
Json in_memory(std::uint64_t objects) {
  CacheOptions nowhere;
  const auto cache = Cache::open(std::move(nowhere));
  Object object = numbered_object(0, 64);
  for (std::uint64_t i = 0; i < objects; ++i) {
    object.key = numbered_key(i);
    cache->publish(object);
  }
  std::mt19937_64 random(objects + 2);
  std::vector<double> times;
  for (int i = 0; i < kLookUps; ++i) {
    const KeyRecord key = numbered_key(random() % objects);
    const auto start = Clock::now();
    const auto hit = cache->find(key);
    if (hit) times.push_back(microseconds(Clock::now() - start));
  }
  Json row = {{"objects", objects}, {"found", times.size()}};
  if (!times.empty()) row.update(percentiles(times));
  return row;
}

struct Shared {
  int go = -1;      ///< Readable when all may start.
  int report = -1;  ///< Each process writes one double.
};

[[noreturn]] void ask(const fs::path& dir, int compile_ms, const Shared& shared) {
  const auto cache = open_cache(dir);
  const Object object = numbered_object(1, 100'000);
  char start = 0;
  (void)!read(shared.go, &start, 1);
  bool compiled = false;
  const auto began = Clock::now();
  const auto hit = cache->find_or_make(object.key, [&](const Stage& stage) -> Result<Object> {
    stage("compile");
    compiled = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(compile_ms));
    return object;
  });
  double took = microseconds(Clock::now() - began);
  if (!hit) took = -1;
  const double row[2] = {took, compiled ? 1.0 : 0.0};
  (void)!write(shared.report, row, sizeof row);
  _exit(0);
}

// Every process waits at a pipe; closing its other end lets all of them go at one moment.
Json single_flight(const fs::path& dir, int processes, int compile_ms) {
  int go[2];
  int report[2];
  if (pipe2(go, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0) return {{"error", "pipe"}};
  for (int i = 0; i < processes; ++i) {
    if (fork() != 0) continue;
    close(go[1]);
    ask(dir, compile_ms, {go[0], report[1]});
  }
  close(go[1]);
  close(report[1]);
  int compiles = 0;
  int failed = 0;
  double slowest_waiter = 0;
  double maker = 0;  // It also writes the object's row, which nobody else waits for.
  double row[2];
  for (int i = 0; i < processes; ++i) {
    if (read(report[0], row, sizeof row) != sizeof row) break;
    const bool compiled = row[1] != 0.0;
    double& slowest = compiled ? maker : slowest_waiter;
    slowest = std::max(slowest, row[0]);
    compiles += compiled ? 1 : 0;
    failed += row[0] < 0 ? 1 : 0;
  }
  while (wait(nullptr) > 0) continue;
  close(go[0]);
  close(report[0]);
  const auto over = [&](double took) { return took / 1000 - compile_ms; };
  return {{"processes", processes},
          {"compile_ms", compile_ms},
          {"compiles", compiles},
          {"failed", failed},
          {"maker_over_compile_ms", over(maker)},
          {"slowest_waiter_over_compile_ms", over(slowest_waiter)}};
}

// Whether every look-up found its object, and one process alone compiled for all.
bool holds(const Json& result) {
  const Json& flight = result["single_flight"];
  bool good = flight.value("compiles", 0) == 1 && flight.value("failed", 1) == 0;
  for (const Json& row : result.value("look_up", Json::array())) {
    good &= row["found"] == kLookUps && row["next_process"]["found"] == kNextProcesses;
  }
  for (const Json& row : result.value("in_memory", Json::array())) good &= row["found"] == kLookUps;
  return good;
}

Json stores_of_growing_size(const fs::path& store, std::uint64_t objects,
                            std::size_t payload_bytes) {
  Json rows = Json::array();
  std::uint64_t filled = 0;
  for (std::uint64_t count = 1000; count <= objects; count *= 10) {
    const auto start = Clock::now();
    if (!fill(store, filled, count, payload_bytes)) {
      std::cerr << "cache_bench: cannot fill " << store << '\n';
      break;
    }
    std::cerr << count << " objects are there after " << seconds_since(start) << " s\n";
    filled = count;
    rows.push_back(look_ups(store, count));
    rows.back()["next_process"] = next_processes(store, count);
  }
  return rows;
}

int run(int argc, char* argv[]) {
  std::string directory;
  std::uint64_t objects = 100'000;
  std::size_t payload_bytes = 4096;
  int processes = 64;
  int compile_ms = 300;
  std::vector<std::string> one;
  CLI::App app{"Times the cache's look-ups and its single flight."};
  app.add_option("--directory", directory, "Where the stores are made");
  app.add_option("--objects", objects, "Objects of the largest store (1000 and its tenfolds)");
  app.add_option("--payload", payload_bytes, "Bytes of each object's payload");
  app.add_option("--processes", processes, "Processes that ask for one cold key");
  app.add_option("--compile-ms", compile_ms, "How long the compile takes");
  app.add_option("--look-up", one, "Look up the object of this number in this store, and end")
      ->expected(2);
  CLI11_PARSE(app, argc, argv);
  if (!one.empty()) return look_up_once(one[0], std::stoull(one[1]));

  std::string root = (directory.empty() ? fs::temp_directory_path() : fs::path(directory)) /
                     "broach-cache-bench-XXXXXX";
  if (mkdtemp(root.data()) == nullptr) {
    std::cerr << "cache_bench: cannot create " << root << '\n';
    return 1;
  }
  Json result;
  result["bench"] = "cache";
  result["payload_bytes"] = payload_bytes;
  const fs::path store = fs::path(root) / "store";
  fs::create_directories(store);
  fs::permissions(store, fs::perms::owner_all);
  result["single_flight"] = single_flight(fs::path(root) / "flight", processes, compile_ms);
  for (std::uint64_t count = 1000; count <= std::min(objects, kMostInMemory); count *= 10) {
    result["in_memory"].push_back(in_memory(count));
  }
  result["look_up"] = stores_of_growing_size(store, objects, payload_bytes);
  std::cout << result.dump(2) << std::endl;
  std::cerr << "removing the stores\n";
  std::error_code ignored;
  fs::remove_all(root, ignored);
  return holds(result) ? 0 : 1;
}

}  // namespace
}  // namespace broach::cache

int main(int argc, char* argv[]) { return broach::cache::run(argc, argv); }
