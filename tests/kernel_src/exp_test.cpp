#include "common/exp.cuh"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "common/tanh.cuh"
#include "tests/support/catch.hpp"

namespace broach {
namespace {

/// Units of the type with `bits` of significand and least exponent `least` between two numbers,
/// the unit taken at the exact one.
double ulps(long double exact, long double got, int bits, int least) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  const int unit = std::max(exponent - bits, least);
  return static_cast<double>(std::abs(got - exact) / std::ldexp(1.0L, unit));
}

double exp32_ulps(std::uint32_t bits) {
  const float x = float_of(bits);
  // glibc's double exp is within one of its own units: 2^-29 of one of fp32's.
  const double exact = std::exp(static_cast<double>(x));
  const float got = exp32(x);
  if (!(got >= 0.0F)) return std::numeric_limits<double>::infinity();
  // exact < 2^(exponent): its unit in fp32 is 2^(exponent - 24), and 2^-149 at least.
  const int exponent = static_cast<int>(bits_of(exact) >> 52) - 1022;
  const int unit = std::max(exponent - 24, -149);
  const double units = double_of(static_cast<std::uint64_t>(1023 - unit) << 52);
  return std::abs(static_cast<double>(got) - exact) * units;
}

double worst_exp32(std::uint32_t first, std::uint64_t last, std::uint32_t step) {
  double worst = 0;
  for (std::uint64_t bits = first; bits <= last; bits += step) {
    worst = std::max(worst, exp32_ulps(static_cast<std::uint32_t>(bits)));
  }
  return worst;
}

constexpr std::uint32_t kMinusZero = 0x80000000;
constexpr std::uint32_t kMinusInfinity = 0xff800000;

}  // namespace

TEST_CASE("exp32 is within 2 ulps over a sample of its domain", "[kernel_src][exp]") {
  CHECK(worst_exp32(kMinusZero, kMinusInfinity, 4093) <= 2.0);
  CHECK(worst_exp32(0xc2ad0000, 0xc2d20000, 7) <= 2.0);  // Results around and below 2^-126.
}

TEST_CASE("exp32 is within 2 ulps for every fp32 number at or below zero",
          "[kernel_src][exp][slow]") {
  constexpr unsigned kParts = 64;
  const unsigned workers = std::max(1U, std::thread::hardware_concurrency());
  std::vector<double> worst(workers, 0.0);
  std::vector<std::thread> threads;
  for (unsigned w = 0; w < workers; ++w) {
    threads.emplace_back([&worst, w, workers] {
      for (unsigned part = w; part < kParts; part += workers) {
        constexpr std::uint64_t kCount = std::uint64_t{kMinusInfinity} - kMinusZero + 1;
        const std::uint64_t first = kMinusZero + kCount * part / kParts;
        const std::uint64_t end = kMinusZero + kCount * (part + 1) / kParts;
        worst[w] = std::max(worst[w], worst_exp32(static_cast<std::uint32_t>(first), end - 1, 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double most = *std::max_element(worst.begin(), worst.end());
  WARN("worst of exp32: " << most << " ulps");
  CHECK(most <= 2.0);
}

TEST_CASE("the measure of exp32's error sees a wrong last place", "[kernel_src][exp]") {
  const long double exact = std::exp(-1.5L);
  const float right = static_cast<float>(exact);
  CHECK(ulps(exact, static_cast<long double>(right), 24, -149) <= 0.5);
  const float off = float_of(bits_of(right) + 3);
  CHECK(ulps(exact, static_cast<long double>(off), 24, -149) > 2.0);
}

TEST_CASE("exponentials keep the special values", "[kernel_src][exp]") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(bits_of(exp32(-inf)) == 0);
  CHECK(bits_of(exp32(-1e30F)) == 0);
  CHECK(bits_of(exp32(-104.0F)) == 0);               // Below half of the least subnormal.
  CHECK(bits_of(exp32(float_of(0xc2cff1b4))) == 1);  // Just above it: -103.97207.
  CHECK(bits_of(exp32(0.0F)) == 0x3f800000);
  CHECK(bits_of(exp32(-0.0F)) == 0x3f800000);
  CHECK(std::isnan(exp32(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(exp32(float_of(0xffffffff))));
  CHECK(bits_of(exp64(-double{inf})) == 0);
  CHECK(exp64(0.0) == 1.0);
  CHECK(exp64(-745.1) == std::numeric_limits<double>::denorm_min());
  CHECK(bits_of(exp64(-746.0)) == 0);
  CHECK(std::isnan(exp64(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("exp64 is within 2 ulps over a sample of its domain", "[kernel_src][exp]") {
  double worst = 0;
  for (double x = -745.0; x <= 0; x += 0.00317) {
    worst = std::max(worst, ulps(std::exp(static_cast<long double>(x)),
                                 static_cast<long double>(exp64(x)), 53, -1074));
  }
  CHECK(worst <= 2.0);
}

TEST_CASE("tanh32 is within 2 ulps and odd over a sample", "[kernel_src][tanh]") {
  double worst = 0;
  for (std::uint32_t bits = 1; bits < 0x7f800000; bits += 1021) {
    const float x = float_of(bits);
    worst = std::max(worst, ulps(std::tanh(static_cast<long double>(x)),
                                 static_cast<long double>(tanh32(x)), 24, -149));
    if (tanh32(-x) != -tanh32(x)) worst = std::numeric_limits<double>::infinity();
  }
  CHECK(worst <= 2.0);
}

TEST_CASE("tanh64 is within 4 ulps and odd over a sample", "[kernel_src][tanh]") {
  double worst = 0;
  for (double x = 1e-9; x < 30; x *= 1.00003) {
    worst = std::max(worst, ulps(std::tanh(static_cast<long double>(x)),
                                 static_cast<long double>(tanh64(x)), 53, -1074));
    if (tanh64(-x) != -tanh64(x)) worst = std::numeric_limits<double>::infinity();
  }
  CHECK(worst <= 4.0);
}

TEST_CASE("hyperbolic tangents keep the special values", "[kernel_src][tanh]") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(tanh32(inf) == 1.0F);
  CHECK(tanh32(-inf) == -1.0F);
  CHECK(bits_of(tanh32(-0.0F)) == 0x80000000);
  CHECK(std::isnan(tanh32(std::numeric_limits<float>::quiet_NaN())));
  CHECK(tanh64(double{inf}) == 1.0);
  CHECK(tanh64(-double{inf}) == -1.0);
  CHECK(bits_of(tanh64(-0.0)) == 0x8000000000000000);
  CHECK(std::isnan(tanh64(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace broach
