#include "tools/contract/window_rows/range.hpp"

#include <fmt/core.h>

#include <vector>

#include "tools/contract/harness/in_parallel.hpp"
#include "tools/contract/window_rows/bounds.hpp"
#include "tools/contract/window_rows/row_range.hpp"

namespace broach::contract::window_rows {
namespace {

void check_row(const Problem& problem, std::span<const std::uint16_t> out, std::int32_t row,
               std::int32_t kv_head, RangeReport& report) {
  const RowView view = view_of(problem, row, kv_head);
  RowRange range;
  // check_outputs has seen that the arithmetic has bounds.
  range_of(view, *bounds_of(problem.shape, view.first_position, view.keys), range);
  for (std::int32_t g = 0; g < view.heads; ++g) {
    const std::int32_t head = kv_head * view.heads + g;
    const auto from = static_cast<std::size_t>(problem.out_at(row, head));
    for (std::int32_t d = 0; d < view.head_dim; ++d) {
      const auto at = static_cast<std::size_t>(g * view.head_dim + d);
      report.judge(out[from + static_cast<std::size_t>(d)], problem.shape.dtype,
                   {row, head, d, 0, range.exact[at], range.lowest[at], range.highest[at], 0});
    }
  }
}

}  // namespace

Result<RangeReport> check_outputs(const Problem& problem, std::span<const std::uint16_t> out,
                                  std::uint32_t threads) {
  return check_outputs(problem, out, threads, first_rows(problem.rows));
}

Result<RangeReport> check_outputs(const Problem& problem, std::span<const std::uint16_t> out,
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

}  // namespace broach::contract::window_rows
