#include "tests/tools/sage_exact/support.hpp"

// The host target against the bytes that the reference left on an H200.
namespace broach {
namespace {

using contract::sage_exact::Digests;
using contract::sage_exact::GoldenCase;
using contract::sage_exact::Problem;

Digests digests_on_host(const GoldenCase& golden, const std::string& control = {}) {
  const contract::Bench& host = test::sage_host();
  const auto problem =
      test::run_problem(host, test::sage_kernels(host, SageSchedule::kPlain, control), golden.rule,
                        make_input(golden));
  const auto digests = problem.digests();
  REQUIRE(digests);
  return *digests;
}

}  // namespace

TEST_CASE("the host has the golden bytes at every boundary of every case up to 1,024 tokens",
          "[tools][sage_exact]") {
  std::size_t compared = 0;
  for (const GoldenCase& golden : test::golden()) {
    if (golden.rule.tokens > 1024) continue;
    const Digests digests = digests_on_host(golden);
    INFO(golden.name);
    CHECK(test::differing(golden, digests) == std::vector<std::string>());
    compared += digests.size();
  }
  CHECK(compared == 13 * 9);
}

TEST_CASE("the softmax's maxima and denominators are an independent program's",
          "[tools][sage_exact]") {
  const contract::Bench& host = test::sage_host();
  const GoldenCase& golden = test::golden("n50_h1");
  const Problem problem = test::run_problem(host, test::sage_kernels(host, SageSchedule::kPlain),
                                            golden.rule, make_input(golden));
  const auto most = problem.softmax_max();
  const auto sum = problem.softmax_sum();
  REQUIRE(most);
  REQUIRE(sum);
  CHECK(contract::sage_exact::sha256_of(most->data(), most->size() * 4) ==
        "f74feef63ace9d109a07a0dd2247bd7c4c47e0875e8db7bbeebbc9c610eb070e");
  CHECK(contract::sage_exact::sha256_of(sum->data(), sum->size() * 4) ==
        "7c863452f0ae53798a9465474835f2283e2e42afb9969318ebc29863ce8c9588");
}

TEST_CASE("every planted fault changes golden bytes, and only from its boundary on",
          "[tools][sage_exact]") {
  struct Planted {
    const char* control;
    const char* shown_by;  ///< The least case that it changes.
    const char* first;     ///< The first tensor that differs.
  };
  // What a case cannot see is found by the ones that can: the rescale takes several tiles, and a
  // mask takes a ragged last tile.
  const Planted faults[] = {
      {"mean_left_out", "n50_h1", "k_int8"},  {"mean_unrounded", "n50_h1", "k_int8"},
      {"pv_order_swapped", "n50_h1", "out"},  {"rescale_unfused", "n200_h2", "out"},
      {"ieee_division", "n200_h2", "q_int8"}, {"tail_moved", "n200_h2", "out"},
      {"tail_unmasked", "mask_p", "out"}};
  for (const Planted& fault : faults) {
    const GoldenCase& golden = test::golden(fault.shown_by);
    const auto names = test::differing(golden, digests_on_host(golden, fault.control));
    INFO(fault.control << " on " << golden.name);
    REQUIRE_FALSE(names.empty());
    CHECK(names.front() == fault.first);
  }
}

}  // namespace broach
