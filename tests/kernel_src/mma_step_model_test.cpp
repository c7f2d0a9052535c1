#include "kernel_src/tiles/mma_step_model.cuh"

#include <algorithm>
#include <bit>
#include <random>

#include "tests/kernel_src/mma_step_inputs.hpp"
#include "tests/kernel_src/mma_step_reference.hpp"
#include "tests/support/catch.hpp"

namespace broach::tiles {
namespace {

using test::StepInputs;

constexpr std::uint16_t kOne = 0x3F80;  // bf16
constexpr std::uint16_t kInfinity = 0x7F80;
constexpr std::uint16_t kNan = 0x7FC0;
constexpr std::uint16_t kNegative = 0x8000;

std::uint16_t bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  REQUIRE((bits & 0xFFFFU) == 0);  // the tests write values that bf16 holds exactly
  return static_cast<std::uint16_t>(bits >> 16);
}

template <class In, class Step = OneK16>
std::uint32_t run(const StepInputs& in) {
  return mma_step<In, Step>(in.a.data(), 1, in.b.data(), 1, in.c);
}

float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t as_bits(float value) { return std::bit_cast<std::uint32_t>(value); }

template <class In>
test::StepRule rule(int align_bits) {
  return {In::kExponentBits, In::kFractionBits, align_bits};
}

/// How many of `count` random steps differ from the exact reference with the given alignment.
template <class In, class Step>
int count_differences(test::Spread spread, int align_bits, int count) {
  std::mt19937 random(0x5EED);
  int differences = 0;
  for (int i = 0; i < count; ++i) {
    const StepInputs in = test::draw_inputs(random, spread, In::kExponentBits);
    std::uint32_t expected = in.c;
    for (std::size_t k = 0; k < 16; k += Step::kTerms) {
      expected = test::exact_step(rule<In>(align_bits), std::span(in.a).subspan(k, Step::kTerms),
                                  std::span(in.b).subspan(k, Step::kTerms), expected);
    }
    differences += run<In, Step>(in) != expected;
  }
  return differences;
}

TEST_CASE("a step adds exact products to the accumulator", "[kernel_src][mma_step]") {
  StepInputs in;
  in.c = as_bits(0.5F);
  for (std::size_t i = 0; i < 16; ++i) {
    in.a[i] = bf16(static_cast<float>(i + 1));
    in.b[i] = bf16(-2.0F);
  }
  CHECK(as_float(run<Bf16Format>(in)) == -271.5F);  // -2 * (1 + ... + 16) + 0.5
}

TEST_CASE("a term loses what lies under the grid of the largest exponent",
          "[kernel_src][mma_step]") {
  // With a product of 2^0, the grid is 2^-25: 2^-25 + 2^-26 keeps 2^-25 only. Thirty-two such
  // losses would have made a whole unit of the result.
  StepInputs in;
  in.a[0] = kOne;
  in.b[0] = kOne;
  in.a[1] = bf16(1.5F);
  in.b[1] = bf16(0x1p-25F);
  in.a[2] = bf16(-1.0F);
  in.b[2] = kOne;
  CHECK(as_float(run<Bf16Format>(in)) == 0x1p-25F);
  in.a[1] = bf16(-1.5F);  // toward zero, not down
  CHECK(as_float(run<Bf16Format>(in)) == -0x1p-25F);
  in.b[1] = bf16(0x1p-26F);  // 1.5 * 2^-26 is below the unit
  CHECK(run<Bf16Format>(in) == 0U);

  // sm_80's grid is 2^-24 and only the eight products of one half meet on it.
  in.b[1] = bf16(0x1p-24F);
  in.a[1] = bf16(1.5F);
  CHECK(as_float(run<Bf16Format>(in)) == 0x1.8p-24F);
  CHECK(as_float(run<Bf16Format, TwoK8>(in)) == 0x1p-24F);
  std::swap(in.a[1], in.a[9]);
  std::swap(in.b[1], in.b[9]);
  CHECK(as_float(run<Bf16Format>(in)) == 0x1.8p-24F);
  CHECK(as_float(run<Bf16Format, TwoK8>(in)) == 0x1.8p-24F);  // 1 - 1 is gone by then
}

TEST_CASE("products are aligned by the sum of their exponents, not renormalised",
          "[kernel_src][mma_step]") {
  // 1.5 * 1.5 = 2.25 counts as exponent 0: its grid is 2^-25, so that 2^-25 survives beside it.
  StepInputs in;
  in.a[0] = in.b[0] = bf16(1.5F);
  in.a[1] = bf16(0x1p-25F);
  in.b[1] = kOne;
  in.c = as_bits(-2.25F);
  CHECK(run<Bf16Format>(in) == 0U);  // c has exponent 1: the grid is 2^-24
  in.c = as_bits(0.0F);
  in.a[2] = bf16(-1.5F);
  in.b[2] = bf16(1.5F);
  CHECK(as_float(run<Bf16Format>(in)) == 0x1p-25F);
}

TEST_CASE("the sum is truncated toward zero to fp32", "[kernel_src][mma_step]") {
  StepInputs in;
  in.c = as_bits(0x1.FFFFFEp+0F);
  in.a[0] = bf16(0x1.8p-24F);  // three quarters of a unit of c
  in.b[0] = kOne;
  CHECK(as_float(run<Bf16Format>(in)) == 0x1.FFFFFEp+0F);
  in.a[0] = bf16(-0x1.8p-24F);
  CHECK(as_float(run<Bf16Format>(in)) == 0x1.FFFFFCp+0F);
}

TEST_CASE("subnormal operands and results are kept", "[kernel_src][mma_step]") {
  StepInputs in;
  in.a[0] = 0x0001;  // 2^-133
  in.b[0] = kOne;
  CHECK(run<Bf16Format>(in) == 0x00010000U);
  in.b[0] = bf16(0x1p-16F);
  CHECK(run<Bf16Format>(in) == 1U);
  in.b[0] = bf16(0x1p-17F);
  CHECK(run<Bf16Format>(in) == 0U);
  in.a[0] = 0x8001;
  CHECK(run<Bf16Format>(in) == 0U);  // truncated to zero: +0
  in.c = 0x00000003U;
  CHECK(run<Bf16Format>(in) == 0x00000002U);  // 3 - 1/2 units
  in.c = 0;
  // -(2^-149 - 2^-157) - 2^-157 is -2^-149; terms below 2^-158 vanish one by one.
  in.a[0] = bf16(-0x1.FEp-80F);
  in.b[0] = bf16(0x1p-70F);
  in.a[1] = bf16(-0x1p-80F);
  in.b[1] = bf16(0x1p-77F);
  CHECK(run<Bf16Format>(in) == 0x80000001U);
  in.a[1] = in.a[2] = bf16(-0x1p-80F);
  in.b[1] = in.b[2] = bf16(0x1.FEp-79F);
  in.a[3] = bf16(-0x1p-80F);
  in.b[3] = bf16(0x1.04p-78F);
  CHECK(run<Bf16Format>(in) == 0U);
  in = StepInputs{};
  in.a[0] = 0x8001;
  in.b[0] = bf16(0x1p-17F);
  in.c = 0x00000003U;

  StepInputs half;
  half.a[0] = 0x0001;  // 2^-24 in f16
  half.b[0] = 0x0001;
  CHECK(as_float(run<F16Format>(half)) == 0x1p-48F);
}

TEST_CASE("results of 2^128 and above are infinite", "[kernel_src][mma_step]") {
  StepInputs in;
  in.a[0] = in.a[1] = bf16(0x1p+127F);
  in.b[0] = kOne;
  CHECK(as_float(run<Bf16Format>(in)) == 0x1p+127F);
  in.b[1] = kOne;
  CHECK(run<Bf16Format>(in) == 0x7F800000U);
  in.b[1] = bf16(-1.0F);
  CHECK(run<Bf16Format>(in) == 0U);  // what cancels inside the step never overflows
}

TEST_CASE("non-finite terms follow their own rules", "[kernel_src][mma_step]") {
  StepInputs in;
  in.a[0] = kInfinity;
  in.b[0] = bf16(-2.0F);
  CHECK(run<Bf16Format>(in) == 0xFF800000U);
  in.c = 0xFF800000U;
  CHECK(run<Bf16Format>(in) == 0xFF800000U);
  in.c = 0x7F800000U;
  CHECK(run<Bf16Format>(in) == kCanonicalNan);  // infinities of both signs
  in.c = as_bits(1.0F);
  in.b[0] = 0;
  CHECK(run<Bf16Format>(in) == kCanonicalNan);  // infinity times zero
  in.b[0] = kInfinity;
  CHECK(run<Bf16Format>(in) == 0x7F800000U);
  in.b[0] = kNan;
  CHECK(run<Bf16Format>(in) == kCanonicalNan);
  in.a[0] = 0;
  CHECK(run<Bf16Format>(in) == kCanonicalNan);  // NaN times zero
  CHECK(run<Bf16Format, TwoK8>(in) == kCanonicalNan);
  in.b[0] = 0;
  in.c = 0xFFC12345U;
  CHECK(run<Bf16Format>(in) == kCanonicalNan);  // payload and sign do not survive
}

TEST_CASE("zero products leave the accumulator unchanged", "[kernel_src][mma_step]") {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    StepInputs in = test::draw_inputs(random, test::Spread::kMixedScales, 8);
    in.c = static_cast<std::uint32_t>(random());
    if ((in.c & 0x7F800000U) == 0x7F800000U || in.c == 0x80000000U) continue;
    for (std::size_t k = 0; k < 16; ++k) {
      (random() % 2 == 0 ? in.a : in.b)[k] = random() % 2 == 0 ? kNegative : std::uint16_t{0};
    }
    REQUIRE(run<Bf16Format>(in) == in.c);
    REQUIRE(run<Bf16Format, TwoK8>(in) == in.c);
  }
}

TEST_CASE("the order of a step's terms does not matter", "[kernel_src][mma_step]") {
  std::mt19937 random(11);
  for (const test::Spread spread : test::kSpreads) {
    for (int i = 0; i < 2000; ++i) {
      StepInputs in = test::draw_inputs(random, spread, 8);
      const std::uint32_t first = run<Bf16Format>(in);
      std::array<std::size_t, 16> order{};
      for (std::size_t k = 0; k < 16; ++k) order[k] = k;
      std::shuffle(order.begin(), order.end(), random);
      StepInputs moved = in;
      for (std::size_t k = 0; k < 16; ++k) {
        moved.a[k] = in.b[order[k]];  // the operands may change places as well
        moved.b[k] = in.a[order[k]];
      }
      REQUIRE(run<Bf16Format>(moved) == first);
    }
  }
}

TEST_CASE("the model is the exact reference in every spread", "[kernel_src][mma_step]") {
  for (const test::Spread spread : test::kSpreads) {
    CAPTURE(test::name_of(spread));
    CHECK(count_differences<Bf16Format, OneK16>(spread, 25, 1500) == 0);
    CHECK(count_differences<F16Format, OneK16>(spread, 25, 1500) == 0);
    CHECK(count_differences<Bf16Format, TwoK8>(spread, 24, 1500) == 0);
    CHECK(count_differences<F16Format, TwoK8>(spread, 24, 1500) == 0);
  }
}

TEST_CASE("a wrong alignment is seen in every spread", "[kernel_src][mma_step]") {
  // The comparison above would notice a grid one bit coarser or finer, whatever the spread.
  for (const test::Spread spread : test::kSpreads) {
    CAPTURE(test::name_of(spread));
    CHECK(count_differences<Bf16Format, OneK16>(spread, 24, 500) > 0);
    CHECK(count_differences<Bf16Format, OneK16>(spread, 26, 500) > 0);
    CHECK(count_differences<Bf16Format, TwoK8>(spread, 25, 500) > 0);
  }
}

TEST_CASE("the f16 accumulator rounds the same sum once to nearest even",
          "[kernel_src][mma_step]") {
  const auto step = [](std::array<std::uint16_t, 16> a, std::array<std::uint16_t, 16> b,
                       std::uint16_t c) {
    return fused_step_f16<F16Format>(a.data(), 1, b.data(), 1, c);
  };
  constexpr std::uint16_t kHalfOne = 0x3C00;
  CHECK(step({kHalfOne}, {kHalfOne}, kHalfOne) == 0x4000);  // 1 + 1
  // 1 + 2^-11 lies half way between 1 and the next value: even wins; a little more rounds up.
  CHECK(step({0x1000}, {kHalfOne}, kHalfOne) == 0x3C00);
  CHECK(step({0x1000, 0x0001}, {kHalfOne, kHalfOne}, kHalfOne) == 0x3C01);
  CHECK(step({0x1000}, {kHalfOne}, 0x3C01) == 0x3C02);
  // Subnormal results: 2^-24 survives, half of it goes to even.
  CHECK(step({0x0001}, {kHalfOne}, 0) == 0x0001);
  CHECK(step({0x0001}, {0x3800}, 0) == 0x0000);
  CHECK(step({0x0001}, {0x3800}, 0x0001) == 0x0002);
  CHECK(step({0x0001}, {0xBA00}, 0) == 0x8001);  // -3/4 units
  // The largest half and overflow: 65504 + 16 rounds to infinity, 65504 + 15 does not.
  CHECK(step({0x4C00}, {kHalfOne}, 0x7BFF) == 0x7C00);
  CHECK(step({0x4B80}, {kHalfOne}, 0x7BFF) == 0x7BFF);
  CHECK(step({0x7C00}, {0}, 0) == kCanonicalNanF16);
  CHECK(step({0x7C00}, {0xBC00}, 0) == 0xFC00);
}

}  // namespace
}  // namespace broach::tiles
