#include "common/sqrt.cuh"

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/support/catch.hpp"

namespace broach {

TEST_CASE("sqrt32 is correctly rounded for every significand", "[kernel_src][sqrt]") {
  // x times 4 has the same significand in its root: two binades stand for all.
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0x3f800000; bits < 0x40800000; ++bits) {
    const float x = float_of(bits);
    if (bits_of(sqrt32(x)) != bits_of(std::sqrt(x))) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("sqrt32 is correctly rounded from the least subnormal to the largest float",
          "[kernel_src][sqrt]") {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x7f800000; bits += 4093) {
    const float x = float_of(bits);
    if (bits_of(sqrt32(x)) != bits_of(std::sqrt(x))) ++wrong;
  }
  for (std::uint32_t bits = 0; bits < 4096; ++bits) {
    const float x = float_of(bits);
    if (bits_of(sqrt32(x)) != bits_of(std::sqrt(x))) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("sqrt32 keeps the special values", "[kernel_src][sqrt]") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(bits_of(sqrt32(-0.0F)) == 0x80000000U);
  CHECK(sqrt32(inf) == inf);
  CHECK(std::isnan(sqrt32(-1.0F)));
  CHECK(std::isnan(sqrt32(-inf)));
  CHECK(std::isnan(sqrt32(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(sqrt32(-std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace broach
