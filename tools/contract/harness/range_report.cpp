#include "tools/contract/harness/range_report.hpp"

#include <fmt/core.h>

#include <cmath>
#include <tuple>

#include "tools/contract/harness/number.hpp"

namespace broach::contract {
namespace {

bool earlier(const Offender& a, const Offender& b) {
  return std::tie(a.row, a.head, a.dim) < std::tie(b.row, b.head, b.dim);
}

// Whether the first offence is worse: a wrong class before any distance, then the greater distance,
// then the earlier output, so that the report does not depend on the threads' order.
bool worse(const Offender& a, const Offender& b) {
  if (a.steps_outside != b.steps_outside) return a.steps_outside > b.steps_outside;
  return earlier(a, b);
}

void blame(RangeReport& report, const Offender& offender) {
  if (!report.first || earlier(offender, *report.first)) report.first = offender;
  if (!report.worst || worse(offender, *report.worst)) report.worst = offender;
}

// An output of another class than float64's counts as further away than any distance.
constexpr std::int64_t kOtherClass = std::int64_t{1} << 32;

}  // namespace

void RangeReport::judge(std::uint16_t bits, Dtype dtype, Offender where) {
  ++checked;
  where.value = value_of(bits, dtype);
  if (!std::isfinite(where.exact)) {
    const bool same =
        std::isnan(where.exact) ? is_nan(bits, dtype) : bits == round_to(where.exact, dtype);
    ++(same ? nonfinite_matched : nonfinite_mismatch);
    where.steps_outside = kOtherClass;
    if (!same) blame(*this, where);
    return;
  }
  if (is_nan(bits, dtype)) {
    ++nonfinite_mismatch;
    where.steps_outside = kOtherClass;
    blame(*this, where);
    return;
  }
  const std::int32_t lowest = place_of(round_to(where.lowest, dtype));
  const std::int32_t highest = place_of(round_to(where.highest, dtype));
  const std::int32_t place = place_of(bits);
  if (place >= lowest && place <= highest) {
    ++(lowest == highest ? pinned : in_range);
    return;
  }
  if (is_infinite(bits, dtype)) {
    ++nonfinite_mismatch;
    where.steps_outside = kOtherClass;
  } else {
    ++out_of_range;
    where.steps_outside = place < lowest ? lowest - place : place - highest;
  }
  blame(*this, where);
}

void RangeReport::add(const RangeReport& other) {
  checked += other.checked;
  pinned += other.pinned;
  in_range += other.in_range;
  out_of_range += other.out_of_range;
  nonfinite_matched += other.nonfinite_matched;
  nonfinite_mismatch += other.nonfinite_mismatch;
  if (other.first) blame(*this, *other.first);
  if (other.worst) blame(*this, *other.worst);
}

std::string words_of(const Offender& offender) {
  return fmt::format("row {} head {} dim {}: {} outside [{}, {}] around {}", offender.row,
                     offender.head, offender.dim, offender.value, offender.lowest, offender.highest,
                     offender.exact);
}

}  // namespace broach::contract
