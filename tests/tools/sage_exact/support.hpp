#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/opened_runtime.hpp"
#include "tools/contract/sage_exact/golden.hpp"
#include "tools/contract/sage_exact/kernels.hpp"
#include "tools/contract/sage_exact/problem.hpp"

namespace broach::test {

namespace sage = contract::sage_exact;

/// Kernels of a bench, loaded once a schedule and control.
inline const sage::Kernels& sage_kernels(const contract::Bench& bench, SageSchedule schedule,
                                         const std::string& control = {}) {
  static std::map<std::string, sage::Kernels> made;
  const std::string name = std::string(bench.device->name()) + "/" +
                           std::to_string(static_cast<int>(schedule)) + "/" + control;
  const auto found = made.find(name);
  if (found != made.end()) return found->second;
  auto kernels = control.empty() ? sage::Kernels::load(bench, schedule)
                                 : sage::Kernels::plant(sage_kernels(bench, schedule), bench,
                                                        schedule, control);
  INFO((kernels ? std::string() : kernels.error().message + "\n" + kernels.error().detail));
  REQUIRE(kernels);
  return made.emplace(name, *std::move(kernels)).first->second;
}

inline const contract::Bench& sage_host() {
  static const OpenedRuntime host("host");
  REQUIRE(host.runtime);
  return host.bench;
}

/// A GPU whose bytes are golden, or why there is none.
inline const contract::Bench* sage_gpu(std::string& why) {
  static const OpenedRuntime gpu("cuda");
  why = gpu.why;
  if (!gpu.runtime) return nullptr;
  if (gpu.bench.device->target().arch == "sm_90a") return &gpu.bench;
  why = "golden bytes and the warpgroup kernel are sm_90a's";
  return nullptr;
}

inline const std::vector<sage::GoldenCase>& golden() {
  static const std::vector<sage::GoldenCase> cases = [] {
    auto read = sage::golden_cases();
    INFO((read ? std::string() : read.error().message));
    REQUIRE(read);
    return *std::move(read);
  }();
  return cases;
}

inline const sage::GoldenCase& golden(const std::string& name) {
  for (const sage::GoldenCase& each : golden()) {
    if (each.name == name) return each;
  }
  FAIL("no golden case " << name);
  return golden().front();
}

/// Runs a case's input and gives the problem, its outputs written.
inline sage::Problem run_problem(const contract::Bench& bench, const sage::Kernels& kernels,
                                 const sage::InputRule& rule,
                                 const std::vector<std::uint16_t>& input) {
  auto problem = sage::Problem::make(*bench.device, static_cast<std::uint32_t>(rule.tokens),
                                     static_cast<std::uint32_t>(rule.heads), input);
  INFO((problem ? std::string() : problem.error().message));
  REQUIRE(problem);
  const auto ran = problem->run(kernels);
  INFO((ran ? std::string() : ran.error().message));
  REQUIRE(ran);
  return *std::move(problem);
}

/// Names of the case's tensors whose digests differ from the golden ones.
inline std::vector<std::string> differing(const sage::GoldenCase& golden,
                                          const sage::Digests& digests) {
  std::vector<std::string> names;
  for (const auto& [name, digest] : digests) {
    if (golden.digest(name) != digest) names.push_back(name);
  }
  return names;
}

template <class T>
std::vector<T> values_of(const sage::Problem& problem, std::string_view tensor) {
  const auto bytes = problem.bytes_of(tensor);
  REQUIRE(bytes);
  std::vector<T> values(bytes->size() / sizeof(T));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

}  // namespace broach::test
