#include "runtime/window_rows/prefill_launch.hpp"

#include <algorithm>

#include "runtime/window_rows/prefill_args.hpp"
#include "runtime/window_rows/prefill_tensors.hpp"

namespace broach::runtime {

std::uint32_t prefill_row_blocks(std::int32_t rows, std::int32_t sequences,
                                 std::uint32_t block_rows) noexcept {
  // Sequence s takes ceil(rows_s / b) <= rows_s / b + (b - 1) / b blocks, and never more than its
  // rows.
  const auto all = static_cast<std::uint64_t>(std::max(rows, 0));
  const auto each = static_cast<std::uint64_t>(std::max(sequences, 0));
  return static_cast<std::uint32_t>(std::min(all, (all + each * (block_rows - 1)) / block_rows));
}

Result<void> PrefillLaunch::launch(const broach_window_rows_prefill_args& args,
                                   Stream stream) const {
  const auto heads = static_cast<std::uint32_t>(args.cache.kv_heads) * shape_.gqa_ratio;
  const std::uint32_t row_blocks =
      prefill_row_blocks(args.attention.rows, args.sequences, stage_.block_rows);
  if (stage_.copy_rows == 0) {
    return stage_.launch(row_blocks, heads, 1, prefill_params(shape_, args), stream);
  }
  auto params = tensor_prefill_params(shape_, args, stage_.copy_rows, *stage_.function);
  if (!params) return params.error();
  return stage_.launch(heads, row_blocks, 1, *params, stream);
}

Result<std::unique_ptr<const PrefillLaunch>> make_prefill_launch(const WindowRowsShape& shape,
                                                                 const specializer::Plan& plan,
                                                                 Module& module) {
  auto stages = pick_stages<1>(plan, module, "a prefill plan has one function");
  if (!stages) return stages.error();
  if ((*stages)[0].block_rows == 0) {
    return Error{
        ErrorCode::kInternal, "a prefill plan states the rows of a block; this one none", {}};
  }
  return std::unique_ptr<const PrefillLaunch>(std::make_unique<PrefillLaunch>(shape, (*stages)[0]));
}

}  // namespace broach::runtime
