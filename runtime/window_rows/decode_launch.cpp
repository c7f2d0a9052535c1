#include "runtime/window_rows/decode_launch.hpp"

#include "runtime/window_rows/chunk256_launch.hpp"

namespace broach::runtime {

Result<std::unique_ptr<const DecodeLaunch>> make_decode_launch(const WindowRowsShape& shape,
                                                               const specializer::Plan& plan,
                                                               Module& module) {
  if (shape.form == Form::kDecode && shape.arith == Arith::kChunk256) {
    return make_chunk256_launch(shape, plan, module);
  }
  return Error{ErrorCode::kUnsupported,
               "window_rows: this runtime launches form=decode with arith=chunk256; the shape is " +
                   plan.shape_json,
               {}};
}

}  // namespace broach::runtime
