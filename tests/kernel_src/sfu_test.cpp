#include "common/sfu.cuh"

#include <sodium.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "common/sfu_model.cuh"
#include "tests/support/catch.hpp"

namespace broach {
namespace {

constexpr unsigned kFractions = 1u << 23;

/// SHA-256 of a table's first differences, one signed byte each, as the measurement left them.
template <class Function>
std::string digest_of_differences(unsigned start, Function entry) {
  std::vector<signed char> differences(kFractions);
  unsigned before = start;
  for (unsigned i = 0; i < kFractions; ++i) {
    const unsigned now = entry(i);
    const int difference = static_cast<int>(now - before);
    differences[i] = static_cast<signed char>(difference);
    if (differences[i] != difference) return "a difference beyond a byte";
    before = now;
  }
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, reinterpret_cast<const unsigned char*>(differences.data()),
                     differences.size());
  char hex[2 * sizeof digest + 1];
  return sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
}

unsigned ex2_of(float x) { return sfu::ex2(bits_of(x)); }
unsigned rcp_of(float x) { return sfu::rcp(bits_of(x)); }

constexpr std::string_view kEx2Differences =
    "ac7138fd354de67e62d4e779d71933097bb4f3047cf4b9e844ae518b9ed32bd0";
constexpr std::string_view kRcpDifferences =
    "91186cb5096f5a5fb7ed2ce4bc6ca0dcfcdc0511c2d479afdf5b5bb15a1c01ae";

}  // namespace

TEST_CASE("the exponential's model is the measured table at every fraction", "[kernel_src][sfu]") {
  CHECK(digest_of_differences(0, sfu::ex2_fraction) == kEx2Differences);
  // One entry an ulp off does not pass.
  CHECK(digest_of_differences(0, [](unsigned i) {
          return sfu::ex2_fraction(i) + (i == 12345 ? 1 : 0);
        }) != kEx2Differences);
}

TEST_CASE("the reciprocal's model is the measured table at every fraction", "[kernel_src][sfu]") {
  CHECK(digest_of_differences(1u << 24, sfu::rcp_significand) == kRcpDifferences);
}

TEST_CASE("the exponential's model follows the unit's rules over all arguments",
          "[kernel_src][sfu]") {
  CHECK(ex2_of(0.0f) == 0x3f800000u);
  CHECK(ex2_of(-0.0f) == 0x3f800000u);
  CHECK(ex2_of(float_of(0x807fffffu)) == 0x3f800000u);  // a subnormal
  CHECK(ex2_of(1.0f) == 0x40000000u);
  CHECK(ex2_of(-126.0f) == 0x00800000u);
  CHECK(ex2_of(std::nextafter(-126.0f, -200.0f)) == 0);  // below the least normal
  CHECK(ex2_of(127.0f) == 0x7f000000u);
  CHECK(ex2_of(128.0f) == 0x7f800000u);
  CHECK(ex2_of(1023.0f) == 0x7f800000u);
  CHECK(ex2_of(-1023.5f) == 0);
  CHECK(ex2_of(1e30f) == 0x7f800000u);
  CHECK(ex2_of(-1e30f) == 0);
  CHECK(ex2_of(INFINITY) == 0x7f800000u);
  CHECK(ex2_of(-INFINITY) == 0);
  CHECK(ex2_of(NAN) == 0x7fffffffu);
  // Less than a unit of 2^-23 below zero: the whole part is 0 and the fraction's complement is 0.
  CHECK(ex2_of(-0x1p-24f) == 0x3f800000u);
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    const float x = static_cast<float>(random()) * 0x1p-32f * 252.0f - 126.0f;
    const double exact = std::exp2(static_cast<double>(x));
    REQUIRE(std::abs(static_cast<double>(ex2_approx(x)) - exact) < exact * 0x1p-22);
  }
}

TEST_CASE("the reciprocal's model follows the unit's rules over all arguments",
          "[kernel_src][sfu]") {
  CHECK(rcp_of(1.0f) == 0x3f800000u);
  CHECK(rcp_of(-2.0f) == 0xbf000000u);
  CHECK(rcp_of(2.25f) == 0x3ee38e39u);
  CHECK(rcp_of(0.0f) == 0x7f800000u);
  CHECK(rcp_of(-0.0f) == 0xff800000u);
  CHECK(rcp_of(float_of(0x807fffffu)) == 0xff800000u);
  CHECK(rcp_of(0x1p126f) == 0x00800000u);
  CHECK(rcp_of(std::nextafter(0x1p126f, INFINITY)) == 0);
  CHECK(rcp_of(-0x1p127f) == 0x80000000u);
  CHECK(rcp_of(INFINITY) == 0);
  CHECK(rcp_of(-INFINITY) == 0x80000000u);
  CHECK(rcp_of(NAN) == 0x7fffffffu);
  std::mt19937 random(8);
  for (int i = 0; i < 100000; ++i) {
    const auto bits = static_cast<unsigned>(random()) & 0xbfffffffu;
    const float x = float_of(bits | 0x20000000u);
    const double exact = 1 / static_cast<double>(x);
    REQUIRE(std::abs(static_cast<double>(rcp_approx(x)) - exact) <= std::abs(exact) * 0x1p-23);
  }
}

}  // namespace broach
