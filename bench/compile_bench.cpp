// What a compiler's identity costs, cold and remembered, and how well many compiles fill the cores.
// Prints one JSON object a target.
//   compile_bench [--target TARGET]... [--jobs N] [--shapes N] [--hiprtc-prefix DIR]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "broach/types.hpp"
#include "specializer/compilers.hpp"
#include "specializer/plan.hpp"
#include "specializer/target.hpp"
#include "specializer/window_rows/shape.hpp"

namespace broach::specializer {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// Decode shapes that differ in what costs compile time: head_dim and ratio.
std::vector<WindowRowsShape> shapes(std::size_t count) {
  constexpr std::uint32_t kHeadDims[] = {64, 80, 96, 112, 128, 192, 256, 512};
  constexpr std::uint32_t kRatios[] = {1, 2, 4, 8, 16};
  std::vector<WindowRowsShape> all;
  for (const std::uint32_t head_dim : kHeadDims) {
    for (const std::uint32_t ratio : kRatios) {
      WindowRowsShape shape;
      shape.head_dim = head_dim;
      shape.gqa_ratio = ratio;
      if (all.size() < count) all.push_back(shape);
    }
  }
  return all;
}

struct KeptMemo {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> values;

  Memo memo() {
    return {[this](std::string_view name) -> std::optional<std::string> {
              const std::lock_guard lock(mutex);
              const auto found = values.find(name);
              if (found == values.end()) return std::nullopt;
              return found->second;
            },
            [this](std::string_view name, std::string_view value) {
              const std::lock_guard lock(mutex);
              values.insert_or_assign(std::string(name), value);
            }};
  }
};

double identity_seconds(const CompilersOptions& options, const Memo& memo, const Target& target) {
  const auto start = Clock::now();
  Compilers compilers(options, memo);
  const auto identity = compilers.identity(target);
  return identity ? seconds(Clock::now() - start) : -1;
}

Json measure(const CompilersOptions& options, const std::string& name, std::size_t shape_count) {
  const auto target = parse_target(name);
  if (!target) return {{"target", name}, {"error", target.error().message}};
  KeptMemo kept;
  const double cold = identity_seconds(options, kept.memo(), *target);
  std::vector<double> warm;
  for (int i = 0; i < 101; ++i) warm.push_back(identity_seconds(options, kept.memo(), *target));
  std::sort(warm.begin(), warm.end());

  Compilers compilers(options, kept.memo());
  const std::vector<WindowRowsShape> wanted = shapes(shape_count);
  std::atomic<std::size_t> next = 0;
  std::atomic<std::uint64_t> compile_ms = 0;
  std::atomic<std::size_t> failed = 0;
  std::mutex mutex;
  std::string first_error;
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < options.jobs; ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < wanted.size(); at = next++) {
        const auto made = plan(wanted[at], *target);
        Result<CompileOutput> output = made ? compilers.compile(*made) : made.error();
        if (output) {
          compile_ms += output->compile_ms;
        } else {
          ++failed;
          const std::lock_guard lock(mutex);
          if (first_error.empty()) first_error = output.error().message;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double wall = seconds(Clock::now() - start);
  const double compiling = static_cast<double>(compile_ms.load()) / 1e3;
  const auto identity = compilers.identity(*target);
  return {{"target", name},
          {"compiler", identity ? identity->words : identity.error().message},
          {"identity_cold_ms", cold * 1e3},
          {"identity_remembered_us", warm[warm.size() / 2] * 1e6},
          {"shapes", wanted.size()},
          {"failed", failed.load()},
          {"first_error", first_error},
          {"jobs", options.jobs},
          {"wall_s", wall},
          {"compile_s", compiling},
          {"filled", compiling / options.jobs / wall}};
}

}  // namespace
}  // namespace broach::specializer

int main(int argc, char** argv) {
  CLI::App app("What compiles cost in worker processes");
  std::vector<std::string> targets = {"sm_90a", "gfx90a", "host"};
  std::size_t shape_count = 40;
  broach::specializer::CompilersOptions options;
  options.jobs = std::max(1U, std::thread::hardware_concurrency());
  app.add_option("--target", targets, "Targets to compile for");
  app.add_option("--jobs", options.jobs, "Compiles at once")->check(CLI::Range(1, 1024));
  app.add_option("--shapes", shape_count, "Shapes to compile, at most 40");
  app.add_option("--hiprtc-prefix", options.hiprtc_prefix, "Where tools/fetch-hiprtc unpacked to");
  CLI11_PARSE(app, argc, argv);
  const char* path = std::getenv("PATH");
  options.search_path = path == nullptr ? "" : path;
  bool good = true;
  for (const std::string& target : targets) {
    const auto result = broach::specializer::measure(options, target, shape_count);
    good &= !result.contains("error") && result.at("failed") == 0;
    std::cout << result.dump(2) << std::endl;
  }
  return good ? 0 : 1;
}
