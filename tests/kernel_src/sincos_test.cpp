#include "common/sincos.cuh"

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

namespace broach {
namespace {

constexpr std::uint32_t kMostBits = std::bit_cast<std::uint32_t>(kSinCosMost);

/// fp32 units of the exact value between it and `got`; a NaN is infinitely far.
double ulps(double exact, float got) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  const int unit = std::max(exponent - 24, -149);
  const double distance = std::ldexp(std::abs(static_cast<double>(got) - exact), -unit);
  return distance >= 0 ? distance : std::numeric_limits<double>::infinity();
}

/// The worse of the two errors at the angle with these bits.
double error_at(std::uint32_t bits) {
  const float x = float_of(bits);
  const SinCos got = sincos32(x);
  // glibc reduces exactly and is within one of float64's own units: 2^-29 of one of fp32's.
  return std::max(ulps(std::sin(static_cast<double>(x)), got.sin),
                  ulps(std::cos(static_cast<double>(x)), got.cos));
}

double worst_of(std::uint64_t first, std::uint64_t end, std::uint32_t step) {
  double worst = 0;
  for (std::uint64_t bits = first; bits < end; bits += step) {
    worst = std::max(worst, error_at(static_cast<std::uint32_t>(bits)));
  }
  return worst;
}

}  // namespace

TEST_CASE("sine and cosine are within 2 ulps over a sweep of every angle to 2^20",
          "[kernel_src][sincos]") {
  CHECK(worst_of(0, kMostBits + 1ULL, 2503) <= 2.0);
  CHECK(worst_of(kMostBits - 4000000, kMostBits + 1ULL, 17) <= 2.0);
}

TEST_CASE("sine and cosine are within 2 ulps for every angle to 2^20",
          "[kernel_src][sincos][slow]") {
  const unsigned workers = std::max(1U, std::thread::hardware_concurrency());
  std::vector<double> worst(workers, 0.0);
  std::vector<std::thread> threads;
  for (unsigned w = 0; w < workers; ++w) {
    threads.emplace_back([&worst, w, workers] {
      constexpr unsigned kParts = 64;
      constexpr std::uint64_t kCount = kMostBits + std::uint64_t{1};
      for (unsigned part = w; part < kParts; part += workers) {
        const double of_part = worst_of(kCount * part / kParts, kCount * (part + 1) / kParts, 1);
        worst[w] = std::max(worst[w], of_part);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double most = *std::max_element(worst.begin(), worst.end());
  WARN("worst of sincos32: " << most << " ulps");
  CHECK(most <= 2.0);
}

TEST_CASE("sine and cosine of positions and inverse frequencies agree with 50 digits",
          "[kernel_src][sincos]") {
  using Wide = boost::multiprecision::cpp_bin_float_50;
  std::mt19937 random(3);
  std::uniform_int_distribution<int> position(0, (1 << 20) - 1);
  std::uniform_real_distribution<float> inverse(0.0F, 1.0F);
  double worst = 0;
  for (int i = 0; i < 2000; ++i) {
    const float x = static_cast<float>(position(random)) * (i % 3 == 0 ? 1.0F : inverse(random));
    const SinCos got = sincos32(x);
    worst = std::max({worst, ulps(static_cast<double>(sin(Wide(x))), got.sin),
                      ulps(static_cast<double>(cos(Wide(x))), got.cos)});
  }
  CHECK(worst <= 2.0);
}

TEST_CASE("the measure of the sine's error sees a wrong last place and a lost reduction",
          "[kernel_src][sincos]") {
  const float x = 1000.5F;
  const double exact = std::sin(static_cast<double>(x));
  CHECK(ulps(exact, static_cast<float>(exact)) <= 0.5);
  CHECK(ulps(exact, float_of(bits_of(static_cast<float>(exact)) + 3)) > 2.0);
  // pi/2 to 24 bits alone.
  const float near = 205887.421875F;
  const float n = std::nearbyint(near * 0x1.45f306p-1F);
  const float poor = std::fma(n, -0x1.921fb6p+0F, near);
  CHECK(ulps(std::sin(static_cast<double>(near)), std::sin(poor)) > 2.0);
  CHECK(error_at(bits_of(near)) <= 2.0);
}

TEST_CASE("sine is odd, cosine even, and special angles keep their values",
          "[kernel_src][sincos]") {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits <= kMostBits; bits += 104729) {
    const SinCos plus = sincos32(float_of(bits));
    const SinCos minus = sincos32(float_of(bits | 0x80000000U));
    if (bits_of(minus.sin) != (bits_of(plus.sin) ^ 0x80000000U)) ++wrong;
    if (bits_of(minus.cos) != bits_of(plus.cos)) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(bits_of(sincos32(0.0F).sin) == 0);
  CHECK(bits_of(sincos32(-0.0F).sin) == 0x80000000U);
  CHECK(sincos32(0.0F).cos == 1.0F);
  CHECK(bits_of(sincos32(float_of(1)).sin) == 1);
  CHECK(std::isnan(sincos32(std::numeric_limits<float>::infinity()).sin));
  CHECK(std::isnan(sincos32(-std::numeric_limits<float>::infinity()).cos));
  CHECK(std::isnan(sincos32(std::numeric_limits<float>::quiet_NaN()).sin));
}

}  // namespace broach
