#include <utility>

#include "runtime/attention/check_args.hpp"
#include "runtime/kernel/info.hpp"
#include "runtime/operator.hpp"
#include "runtime/operator_request.hpp"
#include "runtime/window_rows/decode_args.hpp"
#include "runtime/window_rows/decode_launch.hpp"
#include "runtime/window_rows/operators.hpp"
#include "specializer/window_rows/shape.hpp"

namespace broach::runtime {
namespace {

Result<std::unique_ptr<const Launch>> make_launch(const LaunchParts& parts) {
  auto made = make_decode_launch(specializer::typed_of<WindowRowsShape>(parts.served), parts.plan,
                                 parts.module, parts.multiprocessors);
  if (!made) return made.error();
  return std::unique_ptr<const Launch>(*std::move(made));
}

}  // namespace
}  // namespace broach::runtime

namespace broach {

WindowRowsDecode::WindowRowsDecode(std::shared_ptr<const runtime::Operator> op) noexcept
    : op_(std::move(op)) {}

std::size_t WindowRowsDecode::workspace_bytes(std::int32_t rows, std::int32_t kv_heads,
                                              std::int32_t max_keys) const noexcept {
  return op_->launch<runtime::DecodeLaunch>().workspace_bytes(rows, kv_heads, max_keys);
}

Result<void> WindowRowsDecode::launch(const broach_window_rows_decode_args& args,
                                      void* stream) const {
  const auto& serving = op_->launch<runtime::DecodeLaunch>();
  if (auto ok = runtime::check_decode_args(serving.shape(), args); !ok) return ok;
  if (args.attention.rows == 0) return {};
  const std::size_t needed = serving.workspace_bytes(args.attention.rows, args.cache.kv_heads,
                                                     runtime::key_bound(args.cache, args.max_keys));
  if (auto ok = runtime::check_workspace("window_rows decode", args.workspace, args.workspace_bytes,
                                         needed);
      !ok) {
    return ok;
  }
  return serving.launch(args, stream);
}

WindowRowsShape WindowRowsDecode::shape() const noexcept {
  return op_->launch<runtime::DecodeLaunch>().shape();
}

KernelInfo WindowRowsDecode::info() const { return runtime::info_of(*op_); }

Result<WindowRowsDecode> window_rows_decode(Runtime& runtime, const WindowRowsShape& shape,
                                            void* stream) {
  return runtime::window_rows_decode(runtime.state(), shape, stream);
}

}  // namespace broach

namespace broach::runtime {

Result<WindowRowsDecode> window_rows_decode(Runtime::State& state, const WindowRowsShape& shape,
                                            Stream stream) {
  WindowRowsShape decode = shape;
  decode.form = Form::kDecode;
  auto op = request(state, specializer::shape_of(decode), stream, make_launch);
  if (!op) return op.error();
  return WindowRowsDecode(*std::move(op));
}

}  // namespace broach::runtime
