#include <chrono>
#include <cstdio>

#include "tests/tools/sage_exact/support.hpp"

// The GPU's kernels: golden bytes of every case, the warpgroup kernel against the plain one on
// other shapes and seeds, and times. On chips without golden bytes: repeats and the plain kernel.
namespace broach {
namespace {

using contract::sage_exact::GoldenCase;
using contract::sage_exact::InputRule;
using contract::sage_exact::Kernels;
using contract::sage_exact::Problem;

void check_golden(const contract::Bench& device, SageSchedule schedule, std::size_t most_tokens) {
  const Kernels& kernels = test::sage_kernels(device, schedule);
  for (const GoldenCase& golden : test::golden()) {
    if (golden.rule.tokens > most_tokens) continue;
    const Problem problem = test::run_problem(device, kernels, golden.rule, make_input(golden));
    const auto digests = problem.digests();
    REQUIRE(digests);
    const auto names = test::differing(golden, *digests);
    INFO(golden.name);
    CHECK(names == std::vector<std::string>());
    std::printf("  %-12s %zu of 9 boundary tensors have the golden bytes\n", golden.name.c_str(),
                9 - names.size());
    std::fflush(stdout);
  }
}

/// Bytes that differ between two tensors.
std::size_t count_differences(const Problem& a, const Problem& b, std::string_view tensor) {
  const auto left = test::values_of<std::uint8_t>(a, tensor);
  const auto right = test::values_of<std::uint8_t>(b, tensor);
  REQUIRE(left.size() == right.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < left.size(); ++i) count += left[i] != right[i] ? 1U : 0U;
  return count;
}

/// Milliseconds a call, the median of `repeats` groups of `group` calls.
template <class Launch>
double median_ms(const contract::Bench& bench, int repeats, int group, Launch launch) {
  REQUIRE(launch());
  REQUIRE(bench.device->synchronize(nullptr));
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < group; ++j) REQUIRE(launch());
    REQUIRE(bench.device->synchronize(nullptr));
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    times.push_back(spent.count() / group);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

TEST_CASE("the GPU's plain kernels have the golden bytes of every small case",
          "[tools][sage_exact][gpu][sanitize]") {
  std::string why;
  const contract::Bench* const device = test::sage_gpu(why);
  if (!device) BROACH_SKIP(why);
  check_golden(*device, SageSchedule::kPlain, 1024);
}

TEST_CASE("the GPU's warpgroup kernel has the golden bytes of every small case",
          "[tools][sage_exact][gpu][sanitize]") {
  std::string why;
  const contract::Bench* const device = test::sage_gpu(why);
  if (!device) BROACH_SKIP(why);
  check_golden(*device, SageSchedule::kWarpgroup, 1024);
}

TEST_CASE("the GPU's warpgroup kernel has the plain kernel's bytes on other shapes and seeds",
          "[tools][sage_exact][gpu][sanitize]") {
  std::string why;
  const contract::Bench* const device = test::sage_gpu(why);
  if (!device) BROACH_SKIP(why);
  std::uint64_t seed = 100;
  std::size_t differing = 0;
  for (const std::size_t tokens :
       {1U, 16U, 63U, 64U, 65U, 127U, 129U, 191U, 192U, 193U, 383U, 450U, 577U, 1000U, 2111U}) {
    for (const int multiplier : {1, 8}) {
      const InputRule rule{tokens, tokens % 3 + 1, seed++, multiplier};
      const std::vector<std::uint16_t> input = contract::sage_exact::make_input(rule);
      const Problem plain = test::run_problem(
          *device, test::sage_kernels(*device, SageSchedule::kPlain), rule, input);
      const Problem fast = test::run_problem(
          *device, test::sage_kernels(*device, SageSchedule::kWarpgroup), rule, input);
      INFO(tokens << " tokens, " << rule.heads << " heads, seed " << rule.seed);
      const std::size_t count = count_differences(plain, fast, "out");
      CHECK(count == 0);
      differing += count;
      CHECK(*plain.softmax_max() == *fast.softmax_max());
      CHECK(*plain.softmax_sum() == *fast.softmax_sum());
    }
  }
  std::printf("  30 other shapes: %zu differing bytes\n", differing);
}

TEST_CASE("the GPU has the golden bytes of the canonical shape", "[tools][sage_exact][gpu]") {
  std::string why;
  const contract::Bench* const device = test::sage_gpu(why);
  if (!device) BROACH_SKIP(why);
  check_golden(*device, SageSchedule::kWarpgroup, 1U << 20);
}

TEST_CASE("repeats of the canonical heads are the same bytes", "[tools][sage_exact][gpu]") {
  std::string why;
  const contract::Bench* const device = test::sage_gpu(why);
  if (!device) BROACH_SKIP(why);
  const Kernels& kernels = test::sage_kernels(*device, SageSchedule::kWarpgroup);
  const GoldenCase& golden = test::golden("n37810_h2");
  Problem problem = test::run_problem(*device, kernels, golden.rule, make_input(golden));
  const auto first = test::values_of<std::uint16_t>(problem, "out");
  for (int i = 0; i < 4; ++i) {
    REQUIRE(problem.run(kernels));
    CHECK(test::values_of<std::uint16_t>(problem, "out") == first);
  }
}

TEST_CASE("times of the canonical shape", "[tools][sage_exact][gpu][slow]") {
  std::string why;
  const contract::Bench* const device = test::sage_gpu(why);
  if (!device) BROACH_SKIP(why);
  const GoldenCase& golden = test::golden("n37810_h56");
  const std::vector<std::uint16_t> input = make_input(golden);
  const Kernels& fast = test::sage_kernels(*device, SageSchedule::kWarpgroup);
  Problem problem = test::run_problem(*device, fast, golden.rule, input);
  problem.drop_transpose();
  const double attention = median_ms(*device, 7, 3, [&] { return problem.launch_attention(fast); });
  const double preparation =
      median_ms(*device, 7, 10, [&] { return problem.launch_preparation(fast); });
  std::printf("  n37810_h56: attention %.2f ms, preparation %.3f ms (medians of 7 groups)\n",
              attention, preparation);
  CHECK(attention < 106.4);  // the reference's
  CHECK(preparation < 2.3);
}

}  // namespace broach
