#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "specializer/compilers.hpp"

namespace broach::test {

/// Options with the PATH of the test run.
inline specializer::CompilersOptions compilers_options() {
  specializer::CompilersOptions options;
  const char* path = std::getenv("PATH");
  options.search_path = path == nullptr ? "/usr/bin:/bin" : path;
  options.jobs = 2;
  return options;
}

inline specializer::Target nvidia(std::string arch) {
  specializer::Target target;
  target.name = target.arch = std::move(arch);
  target.vendor = specializer::Vendor::kNvidia;
  return target;
}

inline specializer::Target amd(std::string arch) {
  specializer::Target target = nvidia(std::move(arch));
  target.vendor = specializer::Vendor::kAmd;
  return target;
}

inline specializer::Target host() {
  specializer::Target target;
  target.name = "host-x86-64-v3";
  target.arch = "x86-64-v3";
  return target;
}

/// A plan of a main source and two headers that stand on each other, for any compiler.
inline specializer::Plan tiny_plan(const specializer::Target& target,
                                   std::string body = "twice(1)") {
  specializer::Plan plan;
  plan.family = "tiny";
  plan.target = target;
  plan.shape_json = "{}";
  const bool device = target.vendor != specializer::Vendor::kHost;
  const std::string function = device ? "__device__ " : "inline ";
  const std::string entry =
      device
          ? "extern \"C\" __global__ void tiny(int* out) { *out = "
          : "extern \"C\" __attribute__((visibility(\"default\"))) void tiny(int* out) { *out = ";
  plan.sources = {
      {"main.cu", "#include \"a/first.cuh\"\n#include \"b/second.cuh\"\n" + entry + body + "; }\n"},
      {"a/first.cuh", "#pragma once\n#include \"b/second.cuh\"\n" + function +
                          "int twice(int x) { return 2 * second(x); }\n"},
      {"b/second.cuh", "#pragma once\n" + function + "int second(int x) { return x + 1; }\n"}};
  if (target.vendor == specializer::Vendor::kNvidia) plan.options = {"--std=c++20"};
  if (target.vendor == specializer::Vendor::kAmd) plan.options = {"-std=c++20", "-O3"};
  if (target.vendor == specializer::Vendor::kHost) {
    plan.options = {"-std=c++20", "-O2", "-fPIC", "-shared"};
  }
  return plan;
}

/// A memo in memory that counts.
struct CountingMemo {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> values;
  int found = 0;

  specializer::Memo memo() {
    return {[this](std::string_view name) -> std::optional<std::string> {
              const std::lock_guard lock(mutex);
              const auto entry = values.find(name);
              if (entry == values.end()) return std::nullopt;
              ++found;
              return entry->second;
            },
            [this](std::string_view name, std::string_view value) {
              const std::lock_guard lock(mutex);
              values[std::string(name)] = value;
            }};
  }
};

/// Waits until something holds; a test that waits for ever is stopped by its time limit.
template <class Condition>
void wait_until(Condition holds) {
  while (!holds()) std::this_thread::yield();
}

/// Process ids of this process's living compile workers.
inline std::vector<pid_t> worker_pids() {
  std::vector<pid_t> pids;
  const std::string parent = "PPid:\t" + std::to_string(::getpid());
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream status(entry.path() / "status");
    bool worker = false;
    bool child = false;
    // A leader is a zombie while other threads of its process still hold the sockets.
    bool zombie = false;
    bool alone = true;
    for (std::string line; std::getline(status, line);) {
      // Under another prefix's loader the program goes by the loader's name.
      worker |= line == "Name:\tbroach-rtc" || line.starts_with("Name:\tld-linux");
      child |= line == parent;
      zombie |= line.starts_with("State:\tZ");
      alone &= !line.starts_with("Threads:") || line == "Threads:\t1" || line == "Threads:\t0";
    }
    if (worker && child && !(zombie && alone)) pids.push_back(static_cast<pid_t>(std::stoi(name)));
  }
  return pids;
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace broach::test
