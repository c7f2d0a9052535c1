#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/support/catch.hpp"
#include "tools/contract/harness/number.hpp"

using namespace broach;
using namespace broach::contract;

TEST_CASE("every 16-bit value comes back from its double", "[contract][number]") {
  const Dtype dtype = GENERATE(Dtype::kBf16, Dtype::kF16);
  std::uint32_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    const double value = value_of(narrow, dtype);
    if (is_nan(narrow, dtype) != std::isnan(value)) ++wrong;
    if (is_infinite(narrow, dtype) != std::isinf(value)) ++wrong;
    if (!std::isnan(value) && round_to(value, dtype) != narrow) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("rounding is to nearest, ties to even, once from float64", "[contract][number]") {
  const Dtype dtype = GENERATE(Dtype::kBf16, Dtype::kF16);
  std::uint32_t wrong = 0;
  // Between every two finite neighbours: a quarter above the lower, the middle, and the middle
  // moved by an amount that only float64 holds.
  for (std::uint32_t bits = 0; !is_infinite(static_cast<std::uint16_t>(bits + 1), dtype); ++bits) {
    const auto lower = static_cast<std::uint16_t>(bits);
    const auto upper = static_cast<std::uint16_t>(bits + 1);
    const double low = value_of(lower, dtype);
    const double middle = low + (value_of(upper, dtype) - low) / 2;
    if (round_to(low + (middle - low) / 2, dtype) != lower) ++wrong;
    if (round_to(middle, dtype) != ((bits & 1) == 0 ? lower : upper)) ++wrong;
    if (round_to(std::nextafter(middle, 0.0), dtype) != lower) ++wrong;
    if (round_to(std::nextafter(middle, 1e300), dtype) != upper) ++wrong;
    if (round_to(-middle, dtype) != (round_to(middle, dtype) | 0x8000)) ++wrong;
  }
  CHECK(wrong == 0);
  const std::uint16_t infinity = round_to(std::numeric_limits<double>::infinity(), dtype);
  const double most = value_of(static_cast<std::uint16_t>(infinity - 1), dtype);
  CHECK(round_to(most * (1 + 0x1p-20), dtype) == infinity - 1);
  CHECK(round_to(most * 1.01, dtype) == infinity);
  CHECK(is_nan(round_to(std::nan(""), dtype), dtype));
}

TEST_CASE("places follow values, with -0 just below +0", "[contract][number]") {
  const Dtype dtype = GENERATE(Dtype::kBf16, Dtype::kF16);
  CHECK(place_of(0x8000) == place_of(0) - 1);
  CHECK(place_of(0x8001) == place_of(0x8000) - 1);
  std::uint32_t wrong = 0;
  for (std::uint32_t bits = 0; !is_infinite(static_cast<std::uint16_t>(bits), dtype); ++bits) {
    const auto at = static_cast<std::uint16_t>(bits);
    const auto next = static_cast<std::uint16_t>(bits + 1);
    if (place_of(next) != place_of(at) + 1) ++wrong;
    if (place_of(next | 0x8000) != place_of(at | 0x8000) - 1) ++wrong;
    if (!(value_of(next, dtype) > value_of(at, dtype))) ++wrong;
  }
  CHECK(wrong == 0);
}
