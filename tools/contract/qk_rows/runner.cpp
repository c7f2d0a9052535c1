#include "tools/contract/qk_rows/runner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "broach/qk_rows.hpp"
#include "specializer/qk_rows/shape.hpp"
#include "tools/contract/qk_rows/device_problem.hpp"
#include "tools/contract/qk_rows/range.hpp"

namespace broach::contract::qk_rows {
namespace {

constexpr std::int32_t kRows = 64;
constexpr std::int32_t kKvHeads = 4;
constexpr std::int32_t kPosition = 40'000;
constexpr std::int32_t kMostRows = 65'535;
constexpr std::int32_t kMostKvHeads = 1'024;
constexpr std::int32_t kMostPosition = (1 << 20) - 1;  // Where angles are still held to 2 ulps.
constexpr std::int64_t kMostCacheElements = std::int64_t{1} << 30;

Error refused(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message), ""};
}

// The looped nGPT model's, as its manifest has it.
QkRowsShape example() {
  QkRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 4;
  shape.rope_dim = 256;
  shape.norm = HeadNorm::kL2;
  shape.q_scale = Switch::kOn;
  shape.kv_layout = {KvLayoutKind::kRing, 1024};
  return shape;
}

QkRowsShape shape_of(const RunRequest& request) {
  if (!request.has_shape) return example();
  auto shape = specializer::typed_of<QkRowsShape>(request.shape);
  if (shape.head_dim == 0 && shape.gqa_ratio == 0) {
    shape.head_dim = example().head_dim;
    shape.gqa_ratio = example().gqa_ratio;
    if (shape.rope_dim == 0) shape.rope_dim = example().rope_dim;
  }
  return shape;
}

Result<Recipe> recipe_of(const RunRequest& request) {
  if (!request.hi.empty()) return refused("--hi is a prefill's; qk_rows has no rows that see keys");
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
  const KvLayout layout = recipe.shape.kv_layout;
  const bool ring = layout.kind == KvLayoutKind::kRing;
  // No two rows of a launch may have the same cell.
  if (ring && rows > static_cast<std::int64_t>(layout.length)) {
    return refused(
        fmt::format("--rows is {}; a ring of {} positions holds at most {} rows of a "
                    "stream",
                    rows, layout.length, layout.length));
  }
  // A cache without a ring holds every position up to the last.
  const std::int64_t position_elems =
      std::int64_t{recipe.kv_heads} * std::max<std::int64_t>(recipe.shape.head_dim, 1);
  const std::int64_t most =
      ring ? kMostPosition
           : std::min<std::int64_t>(kMostPosition, kMostCacheElements / position_elems - 1);
  if (request.p0) {
    if (auto ok = check_between("--p0", *request.p0, 0, most - rows + 1); !ok) return ok.error();
  }
  const std::int32_t last =
      request.p0 ? *request.p0 + rows - 1 : request.position.value_or(kPosition);
  if (auto ok = check_between("--position", last, rows - 1, most); !ok) return ok.error();
  recipe.length = last + 1;
  for (std::int32_t i = 0; i < rows; ++i) recipe.rows.push_back({0, last - rows + 1 + i});
  return recipe;
}

class QkRowsRunner final : public Runner {
 public:
  explicit QkRowsRunner(Recipe recipe)
      : recipe_(std::move(recipe)), shape_(specializer::shape_of(recipe_.shape)) {}

  std::string name() const override {
    return fmt::format("qk_rows of {} rows up to position {}", recipe_.rows.size(),
                       recipe_.rows.back().position);
  }
  const specializer::Shape& shape() const override { return shape_; }

  Result<void> load(Runtime& runtime) const override {
    auto op = qk_rows_operator(runtime, recipe_.shape);
    if (!op) return op.error();
    return {};
  }

  Result<RunReport> run(Runtime& runtime, runtime::Device& device,
                        const RunOptions& options) const override {
    auto op = qk_rows_operator(runtime, recipe_.shape);
    if (!op) return op.error();
    const Problem problem = make_problem(recipe_);
    auto uploaded = DeviceProblem::upload(device, problem);
    if (!uploaded) return uploaded.error();
    if (auto filled = uploaded->poison(Poison::kNan); !filled) return filled.error();
    if (auto launched = op->launch(uploaded->args(), nullptr); !launched) return launched.error();
    if (auto done = device.synchronize(nullptr); !done) return done.error();
    auto out = uploaded->outputs(Poison::kNan);
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
  Recipe recipe_;
  specializer::Shape shape_;
};

}  // namespace

Result<std::unique_ptr<const Runner>> runner_of(const RunRequest& request) {
  auto recipe = recipe_of(request);
  if (!recipe) return recipe.error();
  return std::unique_ptr<const Runner>(std::make_unique<QkRowsRunner>(std::move(*recipe)));
}

}  // namespace broach::contract::qk_rows
