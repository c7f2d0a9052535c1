#include "tools/contract/sparse_rows/runner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "broach/sparse_rows.hpp"
#include "specializer/sparse_rows/shape.hpp"
#include "tools/contract/sparse_rows/device_problem.hpp"
#include "tools/contract/sparse_rows/range.hpp"

namespace broach::contract::sparse_rows {
namespace {

constexpr std::int32_t kRows = 3;
constexpr std::int32_t kKvHeads = 2;
constexpr std::int32_t kPosition = 8'191;
constexpr std::int32_t kBudget = 512;  // Blocks a row.
constexpr std::int32_t kMostRows = 65'535;
constexpr std::int32_t kMostKvHeads = 1'024;
constexpr std::int64_t kMostCacheElements = std::int64_t{1} << 28;

Error refused(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message), ""};
}

SparseRowsShape example() {
  SparseRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 12;
  shape.compress_ratio = 4;
  shape.q_dtype = QueryDtype::kF32;
  shape.kv_layout = {KvLayoutKind::kPaged, 64};
  return shape;
}

SparseRowsShape shape_of(const RunRequest& request) {
  if (!request.has_shape) return example();
  auto shape = specializer::typed_of<SparseRowsShape>(request.shape);
  if (shape.head_dim == 0 && shape.gqa_ratio == 0) {
    shape.head_dim = example().head_dim;
    shape.gqa_ratio = example().gqa_ratio;
  }
  if (shape.compress_ratio == 0) shape.compress_ratio = example().compress_ratio;
  return shape;
}

Result<Recipe> recipe_of(const RunRequest& request) {
  if (!request.hi.empty()) return refused("--hi is a prefill's; a sparse row sees what it selects");
  if (request.p0 && request.position) {
    return refused("--p0 is the first row's position and --position the last one's: one is enough");
  }
  Recipe recipe;
  recipe.shape = shape_of(request);
  recipe.streams = 1;
  recipe.kv_heads = request.kv_heads.value_or(kKvHeads);
  const std::int32_t rows = request.rows.value_or(kRows);
  if (auto ok = check_between("--kv-heads", recipe.kv_heads, 1, kMostKvHeads); !ok) {
    return ok.error();
  }
  if (auto ok = check_between("--rows", rows, 1, kMostRows); !ok) return ok.error();
  // Rows select from every earlier position, which a ring may have written over.
  std::int64_t most = kMostCacheElements / (std::int64_t{recipe.kv_heads} *
                                            std::max<std::int64_t>(recipe.shape.head_dim, 1)) -
                      1;
  if (recipe.shape.kv_layout.kind == KvLayoutKind::kRing) {
    most = std::min<std::int64_t>(most, std::int64_t{recipe.shape.kv_layout.length} - 1);
  }
  if (request.p0) {
    if (auto ok = check_between("--p0", *request.p0, 0, most - rows + 1); !ok) return ok.error();
  }
  const std::int32_t asked =
      request.position.value_or(static_cast<std::int32_t>(std::min<std::int64_t>(kPosition, most)));
  const std::int32_t last = request.p0 ? *request.p0 + rows - 1 : asked;
  if (auto ok = check_between("--position", last, rows - 1, most); !ok) return ok.error();
  recipe.positions = last + 1;
  for (std::int32_t i = 0; i < rows; ++i) {
    const Pick pick = i % 2 == 0 ? Pick::kRandom : Pick::kClustered;
    recipe.rows.push_back({0, last - rows + 1 + i, pick, kBudget});
  }
  return recipe;
}

class SparseRowsRunner final : public Runner {
 public:
  explicit SparseRowsRunner(Recipe recipe)
      : recipe_(std::move(recipe)), shape_(specializer::shape_of(recipe_.shape)) {}

  std::string name() const override {
    return fmt::format("sparse_rows of {} rows up to position {}, at most {} blocks each",
                       recipe_.rows.size(), recipe_.rows.back().position, kBudget);
  }
  const specializer::Shape& shape() const override { return shape_; }

  Result<void> load(Runtime& runtime) const override {
    auto op = opened(runtime);
    if (!op) return op.error();
    return {};
  }

  Result<RunReport> run(Runtime& runtime, runtime::Device& device,
                        const RunOptions& options) const override {
    auto op = opened(runtime);
    if (!op) return op.error();
    const Problem problem = make_problem(recipe_);
    const auto rows = static_cast<std::int32_t>(recipe_.rows.size());
    auto uploaded =
        DeviceProblem::upload(device, problem, op->workspace_bytes(rows, recipe_.kv_heads));
    if (!uploaded) return uploaded.error();
    if (auto filled = uploaded->poison(Poison::kNan); !filled) return filled.error();
    if (auto launched = op->launch(uploaded->args(), nullptr); !launched) return launched.error();
    if (auto done = device.synchronize(nullptr); !done) return done.error();
    auto out = uploaded->outputs();
    if (!out) return out.error();
    RunReport report;
    report.device = runtime.device_name();
    report.target = runtime.target_name();
    report.range = judge(problem, *out, options.threads);
    if (auto timed = time_launches(report, device, options.timed_launches,
                                   [&] { return op->launch(uploaded->args(), nullptr); });
        !timed) {
      return timed.error();
    }
    return report;
  }

 private:
  Result<SparseRows> opened(Runtime& runtime) const {
    return sparse_rows_operator(runtime, recipe_.shape, recipe_.shape.compress_ratio);
  }

  Recipe recipe_;
  specializer::Shape shape_;
};

}  // namespace

Result<std::unique_ptr<const Runner>> runner_of(const RunRequest& request) {
  auto recipe = recipe_of(request);
  if (!recipe) return recipe.error();
  return std::unique_ptr<const Runner>(std::make_unique<SparseRowsRunner>(std::move(*recipe)));
}

}  // namespace broach::contract::sparse_rows
