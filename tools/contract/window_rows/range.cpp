#include "tools/contract/window_rows/range.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "tools/contract/harness/in_parallel.hpp"
#include "tools/contract/harness/number.hpp"
#include "tools/contract/window_rows/bounds.hpp"
#include "tools/contract/window_rows/row_range.hpp"

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

void judge(std::uint16_t bits, Dtype dtype, Offender where, RangeReport& report) {
  ++report.checked;
  where.value = value_of(bits, dtype);
  if (!std::isfinite(where.exact)) {
    const bool same =
        std::isnan(where.exact) ? is_nan(bits, dtype) : bits == round_to(where.exact, dtype);
    ++(same ? report.nonfinite_matched : report.nonfinite_mismatch);
    where.steps_outside = kOtherClass;
    if (!same) blame(report, where);
    return;
  }
  if (is_nan(bits, dtype)) {
    ++report.nonfinite_mismatch;
    where.steps_outside = kOtherClass;
    blame(report, where);
    return;
  }
  const std::int32_t lowest = place_of(round_to(where.lowest, dtype));
  const std::int32_t highest = place_of(round_to(where.highest, dtype));
  const std::int32_t place = place_of(bits);
  if (place >= lowest && place <= highest) {
    ++(lowest == highest ? report.pinned : report.in_range);
    return;
  }
  if (is_infinite(bits, dtype)) {
    ++report.nonfinite_mismatch;
    where.steps_outside = kOtherClass;
  } else {
    ++report.out_of_range;
    where.steps_outside = place < lowest ? lowest - place : place - highest;
  }
  blame(report, where);
}

void check_row(const DecodeProblem& problem, std::span<const std::uint16_t> out, std::int32_t row,
               std::int32_t kv_head, RangeReport& report) {
  const RowView view = view_of(problem, row, kv_head);
  RowRange range;
  // check_decode has seen that the arithmetic has bounds.
  range_of(view, *bounds_of(problem.shape, view.first_position, view.keys), range);
  for (std::int32_t g = 0; g < view.heads; ++g) {
    const std::int32_t head = kv_head * view.heads + g;
    const auto from = static_cast<std::size_t>(problem.out_at(row, head));
    for (std::int32_t d = 0; d < view.head_dim; ++d) {
      const auto at = static_cast<std::size_t>(g * view.head_dim + d);
      judge(out[from + static_cast<std::size_t>(d)], problem.shape.dtype,
            {row, head, d, 0, range.exact[at], range.lowest[at], range.highest[at], 0}, report);
    }
  }
}

}  // namespace

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

Result<RangeReport> check_decode(const DecodeProblem& problem, std::span<const std::uint16_t> out,
                                 std::uint32_t threads) {
  return check_decode(problem, out, threads, first_rows(problem.rows));
}

Result<RangeReport> check_decode(const DecodeProblem& problem, std::span<const std::uint16_t> out,
                                 std::uint32_t threads, const std::vector<std::int32_t>& rows) {
  if (out.size() < problem.out_elems()) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} outputs were given for a problem of {}", out.size(), problem.out_elems()),
        ""};
  }
  if (auto known = bounds_of(problem.shape, 0, 1); !known) return known.error();
  // A report a row, added in the rows' order whatever the threads did.
  const auto kv_heads = static_cast<std::size_t>(problem.kv_heads);
  std::vector<RangeReport> reports(rows.size() * kv_heads);
  in_parallel(reports.size(), threads, [&](std::size_t i) {
    check_row(problem, out, rows[i / kv_heads], static_cast<std::int32_t>(i % kv_heads),
              reports[i]);
  });
  RangeReport total;
  for (const RangeReport& report : reports) total.add(report);
  return total;
}

}  // namespace broach::contract
