#include "runtime/window_rows/decode_args.hpp"

#include "runtime/attention/check_args.hpp"
#include "runtime/window_rows/attention_shape.hpp"

namespace broach::runtime {
namespace {

constexpr std::string_view kOperation = "window_rows decode";

}  // namespace

Result<void> check_decode_args(const WindowRowsShape& shape,
                               const broach_window_rows_decode_args& args) {
  // Rows and KV heads are axes of the grid.
  if (auto ok = check_attention(attention_shape(shape, kOperation), {kMaxGridYz, kMaxGridYz},
                                args.attention, args.cache, args.max_keys);
      !ok) {
    return ok;
  }
  if (args.reserved != 0) return refused(kOperation, "reserved must be 0");
  if (auto ok = check_indices(kOperation, "positions", args.positions); !ok) return ok;
  return check_indices(kOperation, "slots", args.slots);
}

BroachWindowRowsDecode decode_params(const WindowRowsShape& shape,
                                     const broach_window_rows_decode_args& args) noexcept {
  BroachWindowRowsDecode params{};
  params.attention = args.attention;
  params.cache = args.cache;
  params.positions = args.positions;
  params.slots = args.slots;
  params.workspace = args.workspace;
  set_shape(params, shape);
  return params;
}

}  // namespace broach::runtime
