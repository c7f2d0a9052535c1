#include "runtime/window_rows/decode_launch.hpp"

#include "runtime/window_rows/chunk256_launch.hpp"
#include "runtime/window_rows/tile64_launch.hpp"

namespace broach::runtime {

Result<std::unique_ptr<const DecodeLaunch>> make_decode_launch(const WindowRowsShape& shape,
                                                               const specializer::Plan& plan,
                                                               Module& module,
                                                               std::uint32_t multiprocessors) {
  if (shape.form == Form::kDecode && shape.arith == Arith::kChunk256) {
    return make_chunk256_launch(shape, plan, module);
  }
  if (shape.form == Form::kDecode && is_tile64(shape.arith)) {
    return make_tile64_launch(shape, plan, module, multiprocessors);
  }
  return Error{ErrorCode::kInternal, "no decode is launched by the plan of " + plan.shape_json, {}};
}

}  // namespace broach::runtime
