#include <fmt/core.h>

#include <limits>
#include <utility>

#include "broach/runtime.hpp"
#include "broach/sparse_rows.hpp"
#include "runtime/attention/check_args.hpp"
#include "runtime/kernel/info.hpp"
#include "runtime/launch_stage.hpp"
#include "runtime/operator.hpp"
#include "runtime/operator_request.hpp"
#include "runtime/saturate.hpp"
#include "runtime/sparse_rows/args.hpp"
#include "specializer/sparse_rows/shape.hpp"

namespace broach::runtime {
namespace {

// Blocks a multiprocessor, below which a launch gives each part of a row a block of its own.
constexpr std::uint64_t kBlocksAProcessor = 4;

class SparseRowsLaunch : public Launch {
 public:
  explicit SparseRowsLaunch(const SparseRowsShape& shape) noexcept : shape_(shape) {}

  const SparseRowsShape& shape() const noexcept { return shape_; }
  virtual std::size_t workspace_bytes(std::int32_t rows, std::int32_t kv_heads) const noexcept = 0;
  virtual Result<void> launch(const broach_sparse_rows_args& args, Stream stream) const = 0;

 private:
  SparseRowsShape shape_;
};

class ScalarLaunch final : public SparseRowsLaunch {
 public:
  ScalarLaunch(const SparseRowsShape& shape, LaunchStage fold, LaunchStage merge,
               std::uint32_t multiprocessors) noexcept
      : SparseRowsLaunch(shape), fold_(fold), merge_(merge), multiprocessors_(multiprocessors) {}

  // kernel_src/sparse_rows/scalar.cuh's Partials.
  std::size_t workspace_bytes(std::int32_t rows, std::int32_t kv_heads) const noexcept override {
    if (rows <= 0 || kv_heads <= 0 || !splits(rows, kv_heads)) return 0;
    return saturated_product({static_cast<std::size_t>(rows), static_cast<std::size_t>(kv_heads),
                              shape().gqa_ratio, shape().part_count, shape().head_dim + 2,
                              sizeof(float)});
  }

  Result<void> launch(const broach_sparse_rows_args& args, Stream stream) const override {
    const auto rows = static_cast<std::uint32_t>(args.attention.rows);
    const auto kv_heads = static_cast<std::uint32_t>(args.cache.kv_heads);
    BroachSparseRows params = sparse_rows_params(shape(), args);
    if (!splits(args.attention.rows, args.cache.kv_heads)) {
      return fold_.launch(rows, kv_heads, 1, params, stream);
    }
    params.splits = static_cast<int>(shape().part_count);
    if (auto done = fold_.launch(rows, kv_heads, shape().part_count, params, stream); !done) {
      return done;
    }
    return merge_.launch(rows, kv_heads * shape().gqa_ratio, 1, params, stream);
  }

 private:
  /// Whether a block a part fills the chip better. Rows that fill it leave no partials.
  bool splits(std::int32_t rows, std::int32_t kv_heads) const noexcept {
    return shape().part_count > 1 &&
           static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(kv_heads) <
               kBlocksAProcessor * multiprocessors_;
  }

  LaunchStage fold_;
  LaunchStage merge_;
  std::uint32_t multiprocessors_;
};

class MmaLaunch final : public SparseRowsLaunch {
 public:
  MmaLaunch(const SparseRowsShape& shape, LaunchStage stage) noexcept
      : SparseRowsLaunch(shape), stage_(stage) {}

  std::size_t workspace_bytes(std::int32_t /*rows*/,
                              std::int32_t /*kv_heads*/) const noexcept override {
    return 0;
  }

  Result<void> launch(const broach_sparse_rows_args& args, Stream stream) const override {
    const auto rows = static_cast<std::uint32_t>(args.attention.rows);
    return stage_.launch((rows + stage_.block_rows - 1) / stage_.block_rows,
                         static_cast<std::uint32_t>(args.cache.kv_heads), 1,
                         sparse_rows_params(shape(), args), stream);
  }

 private:
  LaunchStage stage_;
};

Result<std::unique_ptr<const Launch>> make_launch(const LaunchParts& parts) {
  const auto shape = specializer::typed_of<SparseRowsShape>(parts.served);
  if (shape.tile == SparseTile::kMma) {
    auto stages =
        pick_stages<1>(parts.plan, parts.module, "a sparse_rows tile=mma plan has one function");
    if (!stages) return stages.error();
    return std::unique_ptr<const Launch>(std::make_unique<MmaLaunch>(shape, (*stages)[0]));
  }
  auto stages = pick_stages<2>(parts.plan, parts.module,
                               "a sparse_rows tile=scalar plan has a fold and a merge");
  if (!stages) return stages.error();
  return std::unique_ptr<const Launch>(
      std::make_unique<ScalarLaunch>(shape, (*stages)[0], (*stages)[1], parts.multiprocessors));
}

}  // namespace
}  // namespace broach::runtime

namespace broach {

SparseRows::SparseRows(std::shared_ptr<const runtime::Operator> op) noexcept : op_(std::move(op)) {}

std::size_t SparseRows::workspace_bytes(std::int32_t rows, std::int32_t kv_heads) const noexcept {
  return op_->launch<runtime::SparseRowsLaunch>().workspace_bytes(rows, kv_heads);
}

Result<void> SparseRows::launch(const broach_sparse_rows_args& args, void* stream) const {
  const auto& serving = op_->launch<runtime::SparseRowsLaunch>();
  if (auto ok = runtime::check_sparse_rows_args(serving.shape(), args); !ok) return ok;
  if (args.attention.rows == 0) return {};
  const std::size_t needed = serving.workspace_bytes(args.attention.rows, args.cache.kv_heads);
  if (auto ok =
          runtime::check_workspace("sparse_rows", args.workspace, args.workspace_bytes, needed);
      !ok) {
    return ok;
  }
  return serving.launch(args, stream);
}

SparseRowsShape SparseRows::shape() const noexcept {
  return op_->launch<runtime::SparseRowsLaunch>().shape();
}

KernelInfo SparseRows::info() const { return runtime::info_of(*op_); }

Result<SparseRows> sparse_rows_operator(Runtime& runtime, const SparseRowsShape& shape,
                                        std::uint32_t model_compress_ratio, void* stream) {
  if (model_compress_ratio != shape.compress_ratio) {
    return runtime::refused(
        "sparse_rows",
        fmt::format("compress_ratio={} contradicts the model's config, which states {}; a shape "
                    "with compress_ratio={} works",
                    shape.compress_ratio, model_compress_ratio, model_compress_ratio));
  }
  auto op =
      runtime::request(runtime.state(), specializer::shape_of(shape), stream, runtime::make_launch);
  if (!op) return op.error();
  return SparseRows(*std::move(op));
}

}  // namespace broach
