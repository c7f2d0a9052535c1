#include "runtime/window_rows/decode_launch.hpp"

#include "runtime/window_rows/chunk256_launch.hpp"
#include "runtime/window_rows/prefill_launch.hpp"
#include "runtime/window_rows/tile64_launch.hpp"

namespace broach::runtime {

Result<void> DecodeLaunch::launch_prefill(const PrefillArgs&, Stream) const {
  return Error{ErrorCode::kInvalidArgument,
               "window_rows prefill: this operator has form=decode; ask the runtime for the same "
               "shape with form=prefill",
               {}};
}

Result<std::unique_ptr<const DecodeLaunch>> make_decode_launch(const WindowRowsShape& shape,
                                                               const specializer::Plan& plan,
                                                               Module& module,
                                                               std::uint32_t multiprocessors) {
  if (shape.form == Form::kDecode && shape.arith == Arith::kChunk256) {
    return make_chunk256_launch(shape, plan, module);
  }
  if (shape.form == Form::kDecode && shape.arith == Arith::kTile64) {
    return make_tile64_launch(shape, plan, module, multiprocessors);
  }
  if (shape.form == Form::kPrefill &&
      (shape.arith == Arith::kTile64 || shape.arith == Arith::kMma32)) {
    return make_prefill_launch(shape, plan, module);
  }
  return Error{ErrorCode::kUnsupported,
               "window_rows: this runtime launches form=decode with arith=chunk256 or tile64 and "
               "form=prefill with arith=tile64 or mma32; the shape is " +
                   plan.shape_json,
               {}};
}

}  // namespace broach::runtime
