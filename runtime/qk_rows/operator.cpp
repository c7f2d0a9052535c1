#include <algorithm>
#include <utility>

#include "broach/qk_rows.hpp"
#include "broach/runtime.hpp"
#include "kernel_src/qk_rows/names.cuh"
#include "runtime/kernel/info.hpp"
#include "runtime/launch_stage.hpp"
#include "runtime/operator.hpp"
#include "runtime/operator_request.hpp"
#include "runtime/qk_rows/args.hpp"
#include "specializer/qk_rows/shape.hpp"

namespace broach::runtime {
namespace {

// Blocks a multiprocessor that a launch of few rows spreads their heads over.
constexpr std::uint32_t kBlocksAProcessor = 4;

class QkRowsLaunch final : public Launch {
 public:
  QkRowsLaunch(const QkRowsShape& shape, LaunchStage stage, std::uint32_t multiprocessors) noexcept
      : shape_(shape), stage_(stage), multiprocessors_(multiprocessors) {}

  const QkRowsShape& shape() const noexcept { return shape_; }

  Result<void> launch(const broach_qk_rows_args& args, Stream stream) const {
    const auto rows = static_cast<std::uint32_t>(args.rows);
    // No bit depends on who prepares which head of a row.
    const auto heads = static_cast<std::uint32_t>(args.cache.kv_heads) * (shape_.gqa_ratio + 2);
    const auto block_heads =
        static_cast<std::uint32_t>(qk_rows::block_heads(static_cast<int>(shape_.head_dim)));
    const std::uint32_t most = std::min((heads + block_heads - 1) / block_heads, 65535U);
    const std::uint32_t wanted = multiprocessors_ * kBlocksAProcessor / rows + 1;
    return stage_.launch(rows, std::min(most, wanted), 1, qk_rows_params(shape_, args), stream);
  }

 private:
  QkRowsShape shape_;
  LaunchStage stage_;
  std::uint32_t multiprocessors_;
};

Result<std::unique_ptr<const Launch>> make_launch(const LaunchParts& parts) {
  auto stages = pick_stages<1>(parts.plan, parts.module, "a qk_rows plan has one function");
  if (!stages) return stages.error();
  return std::unique_ptr<const Launch>(std::make_unique<QkRowsLaunch>(
      specializer::typed_of<QkRowsShape>(parts.served), (*stages)[0], parts.multiprocessors));
}

}  // namespace
}  // namespace broach::runtime

namespace broach {

QkRows::QkRows(std::shared_ptr<const runtime::Operator> op) noexcept : op_(std::move(op)) {}

Result<void> QkRows::launch(const broach_qk_rows_args& args, void* stream) const {
  const auto& serving = op_->launch<runtime::QkRowsLaunch>();
  if (auto ok = runtime::check_qk_rows_args(serving.shape(), args); !ok) return ok;
  if (args.rows == 0) return {};
  return serving.launch(args, stream);
}

QkRowsShape QkRows::shape() const noexcept { return op_->launch<runtime::QkRowsLaunch>().shape(); }

KernelInfo QkRows::info() const { return runtime::info_of(*op_); }

Result<QkRows> qk_rows_operator(Runtime& runtime, const QkRowsShape& shape, void* stream) {
  auto op =
      runtime::request(runtime.state(), specializer::shape_of(shape), stream, runtime::make_launch);
  if (!op) return op.error();
  return QkRows(*std::move(op));
}

}  // namespace broach
