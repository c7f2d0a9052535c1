#include "common/ftz.cuh"

#include <cmath>
#include <cstdint>
#include <random>

#include "common/e4m3.cuh"
#include "tests/support/catch.hpp"

namespace broach {
namespace {

constexpr float kLeast = 0x1p-126f;

/// As the instruction is described, by long double: the exact value rounded to 24 bits with no
/// least exponent, then flushed.
float flushed(long double exact) {
  if (std::fabs(exact) < 0x1p-126L * (1 - 0x1p-25L)) return std::signbit(exact) ? -0.0f : 0.0f;
  return static_cast<float>(exact);
}

float draw(std::mt19937& random, int low, int high) {
  const int field = low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  const auto bits = static_cast<unsigned>(random()) & 0x807fffffu;
  return float_of(bits | static_cast<unsigned>(field) << 23);
}

long double exact(float value) { return static_cast<long double>(value); }

}  // namespace

TEST_CASE("a product flushes by its value before it meets the subnormals' grid",
          "[kernel_src][ftz]") {
  // 2^-126 (1 - 2^-24), which a processor's own rounding takes up to 2^-126.
  const float below_one = std::nextafter(1.0f, 0.0f);
  CHECK(kLeast * below_one == kLeast);
  CHECK(bits_of(mul_ftz(kLeast, below_one)) == 0);
  CHECK(bits_of(mul_ftz(-kLeast, below_one)) == 0x80000000u);
  CHECK(mul_ftz(kLeast, 1.0f) == kLeast);
  // (1 + 2^-12) (1 - 2^-12) = 1 - 2^-24 is flushed; (1 + 2^-13) (1 - 2^-13) = 1 - 2^-26 is kept.
  CHECK(mul_ftz(kLeast * (1 + 0x1p-12f), 1 - 0x1p-12f) == 0.0f);
  CHECK(mul_ftz(kLeast * (1 + 0x1p-13f), 1 - 0x1p-13f) == kLeast);
  CHECK(bits_of(mul_ftz(float_of(0x807fffffu), 1e30f)) == 0x80000000u);  // a subnormal operand
  CHECK(std::isnan(mul_ftz(INFINITY, float_of(1))));
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const float a = draw(random, 1, 125);
    const float b = draw(random, 126 - static_cast<int>(bits_of(a) >> 23 & 255u), 128);
    REQUIRE(bits_of(mul_ftz(a, b)) == bits_of(flushed(exact(a) * exact(b))));
  }
}

TEST_CASE("an fma flushes by its exact value", "[kernel_src][ftz]") {
  const float below_one = std::nextafter(1.0f, 0.0f);
  CHECK(fma_ftz(kLeast, below_one, 0.0f) == 0.0f);
  CHECK(fma_ftz(kLeast, below_one, float_of(0x007fffffu)) == 0.0f);  // the addend is zero
  CHECK(fma_ftz(0x1p-63f, 0x1p-64f, kLeast) == kLeast + 0x1p-127f);
  // 2^-126 less 2^-151 is the least value kept; a bit more away from 2^-126 is flushed.
  CHECK(fma_ftz(-0x1p-75f, 0x1p-76f, kLeast) == kLeast);
  CHECK(fma_ftz(-0x1p-75f, 0x1.000002p-76f, kLeast) == 0.0f);
  CHECK(bits_of(fma_ftz(0x1p-75f, 0x1.000002p-76f, -kLeast)) == 0x80000000u);
  CHECK(fma_ftz(-0x1.fffffep-76f, 0x1p-76f, kLeast) == kLeast);
  // The product reaches 47 bits below its first, beyond what a double sum at 2^-126 holds.
  CHECK(fma_ftz(-0x1.000002p-75f, 0x1.000002p-76f, kLeast) == 0.0f);
  std::mt19937 random(2);
  for (int i = 0; i < 200000; ++i) {
    const float a = draw(random, 40, 90);
    const float b = draw(random, 126 - static_cast<int>(bits_of(a) >> 23 & 255u),
                         130 - static_cast<int>(bits_of(a) >> 23 & 255u));
    const float c = draw(random, 1, 4);
    // A product of 48 bits and an addend a few binades away: 64 bits hold the sum.
    REQUIRE(bits_of(fma_ftz(a, b, c)) == bits_of(flushed(exact(a) * exact(b) + exact(c))));
  }
}

TEST_CASE("sums flush their operands and their result", "[kernel_src][ftz]") {
  CHECK(add_ftz(kLeast, float_of(1)) == kLeast);
  CHECK(bits_of(sub_ftz(kLeast, 1.5f * kLeast)) == 0x80000000u);
  CHECK(bits_of(add_ftz(float_of(1), float_of(0x80000001u))) == 0);
  CHECK(sub_ftz(2 * kLeast, kLeast) == kLeast);
  CHECK(add_ftz(1.0f, 0x1p-24f) == 1.0f);
}

TEST_CASE("a maximum and a minimum leave NaN out and know the signs of zero", "[kernel_src][ftz]") {
  CHECK(max_ftz(NAN, -1.0f) == -1.0f);
  CHECK(max_ftz(-1.0f, NAN) == -1.0f);
  CHECK(min_ftz(NAN, 3.0f) == 3.0f);
  CHECK(std::isnan(max_ftz(NAN, NAN)));
  CHECK(bits_of(max_ftz(-0.0f, 0.0f)) == 0);
  CHECK(bits_of(min_ftz(0.0f, -0.0f)) == 0x80000000u);
  CHECK(bits_of(max_ftz(float_of(5), -1.0f)) == 0);  // a subnormal counts as zero
  CHECK(max_ftz(2.0f, 1.0f) == 2.0f);
  CHECK(min_ftz(2.0f, 1.0f) == 1.0f);
}

namespace {

/// The value of finite E4M3 bits without a sign, by the definition of the format.
double value_of_e4m3(unsigned bits) {
  const unsigned field = bits >> 3;
  const unsigned fraction = bits & 7u;
  return field == 0 ? std::ldexp(fraction, -9)
                    : std::ldexp(8 + fraction, static_cast<int>(field) - 10);
}

/// Nearest, ties to even, by trying every value.
unsigned nearest_e4m3(double x) {
  unsigned best = 0;
  for (unsigned bits = 1; bits <= 0x7e; ++bits) {
    const double here = std::abs(value_of_e4m3(bits) - x);
    const double there = std::abs(value_of_e4m3(best) - x);
    if (here < there || (here == there && bits % 2 == 0)) best = bits;
  }
  return best;
}

}  // namespace

TEST_CASE("E4M3 is reached by the nearest value, saturated, and left exactly",
          "[kernel_src][e4m3]") {
  for (unsigned bits = 0; bits <= 0x7e; ++bits) {
    const double value = value_of_e4m3(bits);
    const auto f = static_cast<float>(value);
    REQUIRE(e4m3_of(f) == bits);
    REQUIRE(e4m3_of(-f) == (bits | 0x80u));
    REQUIRE(static_cast<double>(
                widen<Half::kF16>(static_cast<unsigned short>(f16_of_e4m3(bits)))) == value);
    REQUIRE(f16_of_e4m3(bits | 0x80u) == (f16_of_e4m3(bits) | 0x8000u));
    if (bits == 0x7e) continue;
    const float middle = static_cast<float>((value + value_of_e4m3(bits + 1)) / 2);
    for (const float x : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e9f)}) {
      REQUIRE(e4m3_of(x) == nearest_e4m3(static_cast<double>(x)));
    }
  }
  for (const float x : {449.0f, 464.0f, 465.0f, 1e30f, INFINITY}) {
    CHECK(e4m3_of(x) == 0x7eu);
    CHECK(e4m3_of(-x) == 0xfeu);
  }
  CHECK(e4m3_of(NAN) == 0x7fu);
  CHECK(e4m3_of(-NAN) == 0x7fu);
  CHECK(e4m3_of(float_of(1)) == 0);
  CHECK(f16_of_e4m3(0x7f) == 0x7fffu);
  CHECK(f16_of_e4m3(0xff) == 0x7fffu);
  CHECK(e4m3_pair(1.0f, -2.0f) == (0xc000u | 0x38u));
  CHECK(f16_pair_of_e4m3(0xc038u) == 0xc0003c00u);
}

}  // namespace broach
