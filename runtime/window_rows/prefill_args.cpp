#include "runtime/window_rows/prefill_args.hpp"

#include <fmt/core.h>

#include <cstdint>

#include "runtime/attention/check_args.hpp"
#include "runtime/window_rows/attention_shape.hpp"

namespace broach::runtime {
namespace {

constexpr std::string_view kOperation = "window_rows prefill";

}  // namespace

Result<void> check_prefill_args(const WindowRowsShape& shape,
                                const broach_window_rows_prefill_args& args) {
  // Query heads are the grid's y.
  const std::int64_t most_kv_heads = kMaxGridYz / std::int64_t{shape.gqa_ratio};
  if (auto ok = check_attention(attention_shape(shape, kOperation), {INT32_MAX, most_kv_heads},
                                args.attention, args.cache, args.max_keys);
      !ok) {
    return ok;
  }
  if (auto ok = check_indices(kOperation, "positions", args.positions); !ok) return ok;
  if (auto ok = check_indices(kOperation, "slots", args.slots); !ok) return ok;
  const std::int32_t rows = args.attention.rows;
  if (rows == 0) return {};
  if (args.sequences < 1 || args.sequences > rows) {
    return refused(kOperation, fmt::format("sequences is {}; it must be 1 to {}, the rows",
                                           args.sequences, rows));
  }
  if (auto ok = check_indices(kOperation, "offsets", args.offsets); !ok) return ok;
  if (args.hi != nullptr) {
    if (auto ok = check_indices(kOperation, "hi", args.hi); !ok) return ok;
  }
  if (shape.kv_layout.kind == KvLayoutKind::kRing && args.sequences == 1) {
    const std::int64_t needed = std::int64_t{shape.window} + rows - 1;
    if (shape.kv_layout.length < needed) {
      return refused(
          kOperation,
          fmt::format("attention.rows is {}; a ring of {} holds window + rows - 1 positions for at "
                      "most {} rows: cut the chunk, or use a longer ring",
                      rows, shape.kv_layout.length,
                      std::int64_t{shape.kv_layout.length} - shape.window + 1));
    }
  }
  return {};
}

BroachWindowRowsPrefill prefill_params(const WindowRowsShape& shape,
                                       const broach_window_rows_prefill_args& args) noexcept {
  BroachWindowRowsPrefill params{};
  params.common.attention = args.attention;
  params.common.cache = args.cache;
  params.common.positions = args.positions;
  params.common.slots = args.slots;
  set_shape(params.common, shape);
  params.offsets = args.offsets;
  params.hi = args.hi;
  params.sequences = args.sequences;
  return params;
}

}  // namespace broach::runtime
