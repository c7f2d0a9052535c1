#include <utility>

#include "runtime/kernel/info.hpp"
#include "runtime/operator.hpp"
#include "runtime/operator_request.hpp"
#include "runtime/window_rows/operators.hpp"
#include "runtime/window_rows/prefill_args.hpp"
#include "runtime/window_rows/prefill_launch.hpp"
#include "specializer/window_rows/shape.hpp"

namespace broach::runtime {
namespace {

Result<std::unique_ptr<const Launch>> make_launch(const LaunchParts& parts) {
  auto made = make_prefill_launch(specializer::typed_of<WindowRowsShape>(parts.served), parts.plan,
                                  parts.module);
  if (!made) return made.error();
  return std::unique_ptr<const Launch>(*std::move(made));
}

}  // namespace
}  // namespace broach::runtime

namespace broach {

WindowRowsPrefill::WindowRowsPrefill(std::shared_ptr<const runtime::Operator> op) noexcept
    : op_(std::move(op)) {}

Result<void> WindowRowsPrefill::launch(const broach_window_rows_prefill_args& args,
                                       void* stream) const {
  const auto& serving = op_->launch<runtime::PrefillLaunch>();
  if (auto ok = runtime::check_prefill_args(serving.shape(), args); !ok) return ok;
  if (args.attention.rows == 0) return {};
  return serving.launch(args, stream);
}

WindowRowsShape WindowRowsPrefill::shape() const noexcept {
  return op_->launch<runtime::PrefillLaunch>().shape();
}

KernelInfo WindowRowsPrefill::info() const { return runtime::info_of(*op_); }

Result<WindowRowsPrefill> window_rows_prefill(Runtime& runtime, const WindowRowsShape& shape,
                                              void* stream) {
  return runtime::window_rows_prefill(runtime.state(), shape, stream);
}

}  // namespace broach

namespace broach::runtime {

Result<WindowRowsPrefill> window_rows_prefill(Runtime::State& state, const WindowRowsShape& shape,
                                              Stream stream) {
  WindowRowsShape prefill = shape;
  prefill.form = Form::kPrefill;
  auto op = request(state, specializer::shape_of(prefill), stream, make_launch);
  if (!op) return op.error();
  return WindowRowsPrefill(*std::move(op));
}

}  // namespace broach::runtime
