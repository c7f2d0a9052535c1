#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "broach/types.hpp"

namespace broach::contract {

/// The output that lies furthest outside its range, or the first whose class is wrong.
///
/// Units:   `steps_outside` counts values of the output's type between it and its range.
struct Offender {
  std::int32_t row = 0;
  std::int32_t head = 0;
  std::int32_t dim = 0;
  double value = 0;
  double exact = 0;  ///< float64's value.
  double lowest = 0;
  double highest = 0;
  std::int64_t steps_outside = 0;
};

/// What a range check found. `checked` is the sum of `pinned`, `in_range`, `out_of_range` and
/// `nonfinite_mismatch`, plus the non-finite outputs that matched.
struct RangeReport {
  std::uint64_t checked = 0;
  std::uint64_t pinned = 0;    ///< The range held one value and the output had its bits.
  std::uint64_t in_range = 0;  ///< Inside a wider range.
  std::uint64_t out_of_range = 0;
  std::uint64_t nonfinite_matched = 0;
  std::uint64_t nonfinite_mismatch = 0;  ///< NaN, +inf, -inf or finite where float64 has another.
  std::optional<Offender> first;         ///< In the order of rows, heads and dims.
  std::optional<Offender> worst;

  bool passed() const noexcept { return checked > 0 && out_of_range + nonfinite_mismatch == 0; }
  void add(const RangeReport& other);

  /// Judges one 16-bit output: `where` names it and holds float64's value and the range, whose ends
  /// round to the output's type. A non-finite exact value has both ends equal to it.
  void judge(std::uint16_t bits, Dtype dtype, Offender where);
};

/// One line for people: which output, its value, its range.
std::string words_of(const Offender& offender);

}  // namespace broach::contract
