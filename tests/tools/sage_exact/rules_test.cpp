#include <cmath>
#include <cstring>
#include <functional>

#include "common/ftz.cuh"
#include "tests/tools/sage_exact/support.hpp"

// What the golden cases do not pin: the family's rules for values beside the ordinary ones, each on
// a small problem of the host target.
namespace broach {
namespace {

using contract::sage_exact::InputRule;
using contract::sage_exact::kHeadDim;
using contract::sage_exact::Problem;

constexpr std::uint16_t kNan = 0x7fc1;
constexpr std::uint16_t kInfinity = 0x7f80;
constexpr std::uint16_t kOutNan = 0x7fff;

/// The elements of one part of an interleaved projection.
struct Part {
  std::vector<std::uint16_t>& input;
  const InputRule& rule;
  std::size_t part;

  std::uint16_t& at(std::size_t token, std::size_t head, std::size_t dim) const {
    return input[token * rule.row_width() + (part * rule.heads + head) * kHeadDim + dim];
  }
};

struct Inputs {
  Part q, k, v;
};

Problem run(const InputRule& rule, const std::function<void(const Inputs&)>& change) {
  std::vector<std::uint16_t> input = contract::sage_exact::make_input(rule);
  change({{input, rule, 0}, {input, rule, 1}, {input, rule, 2}});
  const contract::Bench& host = test::sage_host();
  return test::run_problem(host, test::sage_kernels(host, SageSchedule::kPlain), rule, input);
}

/// Whether out[token, head, dim] is NaN, for each.
struct Out {
  std::vector<std::uint16_t> values;
  InputRule rule;

  std::uint16_t at(std::size_t token, std::size_t head, std::size_t dim) const {
    return values[(token * rule.heads + head) * kHeadDim + dim];
  }
  std::size_t count(std::uint16_t wanted) const {
    return static_cast<std::size_t>(std::count(values.begin(), values.end(), wanted));
  }
};

Out out_of(const Problem& problem, const InputRule& rule) {
  return {test::values_of<std::uint16_t>(problem, "out"), rule};
}

}  // namespace

TEST_CASE("an all-zero channel of v is NaN, its padding too, and no other is",
          "[tools][sage_exact]") {
  const InputRule rule{70, 1, 3, 1};
  const Problem problem = run(rule, [](const Inputs& in) {
    for (std::size_t token = 0; token < 70; ++token)
      in.v.at(token, 0, 9) = static_cast<std::uint16_t>(token % 2 << 15);
  });
  const auto bytes = test::values_of<std::uint8_t>(problem, "v_fp8");
  const auto scales = test::values_of<float>(problem, "v_scale");
  CHECK(scales[9] == 0.0F);
  for (std::size_t p = 0; p < 128; ++p) REQUIRE(bytes[9 * 128 + p] == 0x7f);
  const Out out = out_of(problem, rule);
  CHECK(out.count(kOutNan) == 70);
  CHECK(out.at(69, 0, 9) == kOutNan);
}

TEST_CASE("a channel of NaN alone has the range's start as its scale, or none with padding",
          "[tools][sage_exact]") {
  for (const std::size_t tokens : {std::size_t{64}, std::size_t{70}}) {
    const InputRule rule{tokens, 1, 4, 1};
    const Problem problem = run(rule, [&](const Inputs& in) {
      for (std::size_t token = 0; token < tokens; ++token) in.v.at(token, 0, 5) = kNan;
    });
    const auto scales = test::values_of<std::uint32_t>(problem, "v_scale");
    CHECK(scales[5] == (tokens % 16 == 0 ? 0x48d9038eU : 0U));
    CHECK(out_of(problem, rule).at(0, 0, 5) == kOutNan);
  }
}

TEST_CASE("equal keys give an all-zero block the least scale, and rows the mean of v",
          "[tools][sage_exact]") {
  const InputRule rule{64, 1, 5, 1};
  const Problem problem = run(rule, [](const Inputs& in) {
    for (std::size_t token = 0; token < 64; ++token) {
      for (std::size_t d = 0; d < kHeadDim; ++d) in.k.at(token, 0, d) = 0x3f80;
    }
  });
  CHECK(test::values_of<std::uint32_t>(problem, "k_scale")[0] == 0x30587076U);
  for (const auto byte : test::values_of<std::int8_t>(problem, "k_int8")) REQUIRE(byte == 0);
  const Out out = out_of(problem, rule);
  // Every score is 0: all rows are one row.
  for (std::size_t d = 0; d < kHeadDim; ++d) REQUIRE(out.at(63, 0, d) == out.at(0, 0, d));
  CHECK(out.count(kOutNan) == 0);
}

TEST_CASE("query groups without a row have the least scale", "[tools][sage_exact]") {
  const InputRule rule{33, 2, 6, 1};
  const Problem problem = run(rule, [](const Inputs&) {});
  const auto scales = test::values_of<std::uint32_t>(problem, "q_scale");
  REQUIRE(scales.size() == 8);
  for (const std::size_t group : {2U, 3U, 6U, 7U}) CHECK(scales[group] == 0x30587076U);
  CHECK(scales[1] != 0x30587076U);
}

TEST_CASE("a NaN in q becomes a zero there and changes no other row", "[tools][sage_exact]") {
  const InputRule rule{96, 1, 7, 1};
  const Problem plain = run(rule, [](const Inputs&) {});
  const Problem planted = run(rule, [](const Inputs& in) { in.q.at(40, 0, 3) = kNan; });
  const auto before = test::values_of<std::int8_t>(plain, "q_int8");
  const auto after = test::values_of<std::int8_t>(planted, "q_int8");
  CHECK(after[40 * kHeadDim + 3] == 0);
  const Out a = out_of(plain, rule);
  const Out b = out_of(planted, rule);
  CHECK(b.count(kOutNan) == 0);
  for (std::size_t token = 0; token < 96; ++token) {
    for (std::size_t d = 0; d < kHeadDim; ++d) {
      if (token == 40) continue;
      // The group's scale may have been that element's.
      if (token / 32 == 1 && before[token * kHeadDim + d] != after[token * kHeadDim + d]) continue;
      if (token / 32 != 1) REQUIRE(a.at(token, 0, d) == b.at(token, 0, d));
    }
  }
}

TEST_CASE("an infinity in q makes its 32 rows NaN and no other", "[tools][sage_exact]") {
  const InputRule rule{96, 1, 8, 1};
  const Problem problem = run(rule, [](const Inputs& in) { in.q.at(40, 0, 3) = kInfinity; });
  const Out out = out_of(problem, rule);
  CHECK(out.count(kOutNan) == 32 * kHeadDim);
  for (std::size_t d = 0; d < kHeadDim; ++d) REQUIRE(out.at(32, 0, d) == kOutNan);
}

TEST_CASE("a NaN in k zeroes its column and leaves every output finite", "[tools][sage_exact]") {
  const InputRule rule{80, 2, 9, 1};
  const Problem problem = run(rule, [](const Inputs& in) {
    in.k.at(7, 1, 20) = kNan;
    in.k.at(3, 0, 4) = kInfinity;  // with the opposite one, the mean is NaN as well
    in.k.at(60, 0, 4) = kInfinity | 0x8000;
  });
  const auto means = test::values_of<std::uint16_t>(problem, "k_mean");
  CHECK(means[kHeadDim + 20] == kOutNan);
  CHECK(means[4] == kOutNan);
  const auto keys = test::values_of<std::int8_t>(problem, "k_int8");
  for (std::size_t token = 0; token < 80; ++token) {
    REQUIRE(keys[(token * 2 + 1) * kHeadDim + 20] == 0);
    REQUIRE(keys[token * 2 * kHeadDim + 4] == 0);
  }
  CHECK(out_of(problem, rule).count(kOutNan) == 0);
}

TEST_CASE("an infinity in k makes its head NaN and no other", "[tools][sage_exact]") {
  const InputRule rule{80, 2, 10, 1};
  const Problem problem = run(rule, [](const Inputs& in) { in.k.at(7, 1, 20) = kInfinity; });
  const Out out = out_of(problem, rule);
  CHECK(out.count(kOutNan) == 80 * kHeadDim);
  CHECK(out.at(0, 1, 0) == kOutNan);
}

TEST_CASE("a NaN or an infinity in v makes its channel NaN, in rows that give it no weight too",
          "[tools][sage_exact]") {
  for (const std::uint16_t planted : {kNan, kInfinity}) {
    const InputRule rule{80, 1, 11, 8};
    const Problem problem = run(rule, [&](const Inputs& in) { in.v.at(70, 0, 33) = planted; });
    const Out out = out_of(problem, rule);
    CHECK(out.count(kOutNan) == 80);
    CHECK(out.at(0, 0, 33) == kOutNan);
  }
}

TEST_CASE("subnormal values count as zeros of their sign", "[tools][sage_exact]") {
  const InputRule rule{48, 1, 12, 1};
  const auto with = [&](std::uint16_t small) {
    return run(rule, [&](const Inputs& in) {
      for (std::size_t d = 0; d < kHeadDim; d += 3) {
        in.q.at(5, 0, d) = small;
        in.v.at(11, 0, d) = small;
      }
    });
  };
  const Problem subnormal = with(0x007f);
  const Problem zero = with(0x0000);
  for (const char* tensor : {"q_int8", "q_scale", "v_fp8", "v_scale", "out"}) {
    INFO(tensor);
    CHECK(test::values_of<std::uint8_t>(subnormal, tensor) ==
          test::values_of<std::uint8_t>(zero, tensor));
  }
  const Problem negative = with(0x807f);
  const auto bytes = test::values_of<std::uint8_t>(negative, "v_fp8");
  // Token 11 of 16 lies at position 7.
  CHECK(bytes[7] == 0x80);
}

TEST_CASE("values around 2^126 flush their reciprocal and quantise to zeros",
          "[tools][sage_exact]") {
  const InputRule rule{32, 1, 13, 1};
  const Problem problem = run(rule, [](const Inputs& in) {
    in.q.at(0, 0, 0) = 0x7e81;  // above 2^126
    in.v.at(0, 0, 0) = 0x7e81;
  });
  for (const auto byte : test::values_of<std::int8_t>(problem, "q_int8")) REQUIRE(byte == 0);
  CHECK(std::isfinite(test::values_of<float>(problem, "q_scale")[0]));
  CHECK((test::values_of<std::uint8_t>(problem, "v_fp8")[0] & 0x7fU) == 0);
}

TEST_CASE("one token, and tokens around a tile, are served and every output is written",
          "[tools][sage_exact]") {
  for (const std::size_t tokens : {1U, 2U, 3U, 15U, 16U, 17U, 63U, 65U, 127U, 129U}) {
    const InputRule rule{tokens, 1, 14, 1};
    const Problem problem = run(rule, [](const Inputs&) {});
    INFO(tokens << " tokens");
    // Poison is 0xffff; a NaN of the kernel's is 0x7fff.
    CHECK(out_of(problem, rule).count(0xffff) == 0);
    CHECK(out_of(problem, rule).count(kOutNan) == 0);
  }
}

}  // namespace broach
