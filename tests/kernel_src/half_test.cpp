#include "common/half.cuh"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/load.cuh"
#include "tests/support/catch.hpp"

namespace broach {
namespace {

/// A 16-bit format as the standard states it.
struct Format {
  int exponent_bits;
  int fraction_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
  }
};

template <Half kHalf>
constexpr Format kFormat = kHalf == Half::kBf16 ? Format{8, 7} : Format{5, 10};

/// The value of finite bits without a sign, by the definition of the format.
double value_of(const Format& format, std::uint16_t bits) {
  const int exponent = bits >> format.fraction_bits;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const int significand = exponent == 0 ? fraction : fraction + (1 << format.fraction_bits);
  return std::ldexp(significand, std::max(exponent, 1) - format.bias() - format.fraction_bits);
}

/// Rounds to nearest even by looking for the two neighbours among all values of a format.
class Rounder {
 public:
  explicit Rounder(const Format& format) : infinity_(format.infinity()) {
    for (std::uint16_t bits = 0; bits < infinity_; ++bits) {
      values_.push_back(value_of(format, bits));
    }
    // One more unit in the last binade: what an infinity stands for in a comparison.
    values_.push_back(2 * values_.back() - values_[values_.size() - 2]);
  }

  std::uint16_t round(double x) const {
    if (std::isnan(x)) return 0x7fff;
    const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const double magnitude = std::abs(x);
    const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
    if (above == values_.end()) return sign | infinity_;
    const auto high = static_cast<std::uint16_t>(above - values_.begin());
    if (*above == magnitude || high == 0) return sign | high;
    const double middle = values_[high - 1U] + (*above - values_[high - 1U]) / 2;
    const bool up = magnitude > middle || (magnitude == middle && high % 2 == 0);
    return static_cast<std::uint16_t>(sign | (up ? high : high - 1));
  }

  /// The ties between neighbours: exact in a double, and in fp32 but for the least one of bf16.
  std::vector<double> ties() const {
    std::vector<double> ties;
    for (std::size_t i = 1; i < values_.size(); ++i) {
      ties.push_back(values_[i - 1] + (values_[i] - values_[i - 1]) / 2);
    }
    return ties;
  }

 private:
  std::uint16_t infinity_;
  std::vector<double> values_;
};

template <Half kHalf>
std::size_t wrong_widenings() {
  const Format format = kFormat<kHalf>;
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i <= 0xffff; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const auto magnitude = static_cast<std::uint16_t>(bits & 0x7fff);
    const float got = widen<kHalf>(bits);
    Halves8 eight{};
    eight.words[i % 4] = i % 2 == 0 ? i : i << 16;
    const float from_eight = widen<kHalf>(eight, i % 4 * 2 + i % 2);
    bool right = std::signbit(got) == ((bits & 0x8000) != 0);
    if (magnitude > format.infinity()) {
      right = std::isnan(got) && std::isnan(from_eight);
    } else {
      const double value = magnitude == format.infinity() ? std::numeric_limits<double>::infinity()
                                                          : value_of(format, magnitude);
      right = right && std::abs(static_cast<double>(got)) == value && from_eight == got;
    }
    if (!right) ++wrong;
  }
  return wrong;
}

template <Half kHalf>
std::size_t wrong_narrowings(std::uint32_t step) {
  const Rounder rounder(kFormat<kHalf>);
  std::size_t wrong = 0;
  for (std::uint64_t bits = 0; bits <= 0xffffffff; bits += step) {
    const float x = float_of(static_cast<std::uint32_t>(bits));
    if (narrow<kHalf>(x) != rounder.round(static_cast<double>(x))) ++wrong;
    if (narrow<kHalf>(static_cast<double>(x)) != narrow<kHalf>(x)) ++wrong;
  }
  return wrong;
}

template <Half kHalf>
std::size_t wrong_near_ties() {
  const Rounder rounder(kFormat<kHalf>);
  std::size_t wrong = 0;
  for (const double tie : rounder.ties()) {
    for (const double sign : {1.0, -1.0}) {
      const double at = sign * tie;
      // The doubles beside a tie are ties to fp32: rounding twice would go wrong.
      for (const double x : {at, std::nextafter(at, 0.0), std::nextafter(at, 2 * at)}) {
        if (narrow<kHalf>(x) != rounder.round(x)) ++wrong;
      }
      const auto in_fp32 = static_cast<float>(at);
      for (const float x : {in_fp32, std::nextafter(in_fp32, 0.0F),
                            std::nextafter(in_fp32, static_cast<float>(sign) * 1e38F)}) {
        if (narrow<kHalf>(x) != rounder.round(static_cast<double>(x))) ++wrong;
      }
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("all 65,536 values of both formats widen exactly", "[kernel_src][half]") {
  CHECK(wrong_widenings<Half::kBf16>() == 0);
  CHECK(wrong_widenings<Half::kF16>() == 0);
}

TEST_CASE("fp32 narrows to nearest even over a sample of its bits", "[kernel_src][half]") {
  CHECK(wrong_narrowings<Half::kBf16>(4099) == 0);
  CHECK(wrong_narrowings<Half::kF16>(4099) == 0);
}

TEST_CASE("fp32 narrows to nearest even over a large sample of its bits",
          "[kernel_src][half][slow]") {
  CHECK(wrong_narrowings<Half::kBf16>(61) == 0);
  CHECK(wrong_narrowings<Half::kF16>(61) == 0);
}

TEST_CASE("numbers at and beside every tie are rounded once", "[kernel_src][half]") {
  CHECK(wrong_near_ties<Half::kBf16>() == 0);
  CHECK(wrong_near_ties<Half::kF16>() == 0);
}

TEST_CASE("a rounding through fp32 would be seen beside a tie", "[kernel_src][half]") {
  const double tie = 1.0 + 0x1p-11;  // Between f16's 1 and 1 + 2^-10.
  const double above = std::nextafter(tie, 2.0);
  CHECK(narrow<Half::kF16>(static_cast<float>(above)) == 0x3c00);
  CHECK(narrow<Half::kF16>(above) == 0x3c01);
}

TEST_CASE("every NaN narrows to the canonical one", "[kernel_src][half]") {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fc00000U, 0x7fffffffU, 0xffc00000U}) {
    CHECK(narrow<Half::kBf16>(float_of(bits)) == 0x7fff);
    CHECK(narrow<Half::kF16>(float_of(bits)) == 0x7fff);
    CHECK(narrow<Half::kBf16>(static_cast<double>(float_of(bits))) == 0x7fff);
  }
}

}  // namespace broach
