#include <fmt/core.h>

#include <algorithm>

#include "specializer/window_rows/shape.hpp"
#include "tools/contract/window_rows/range.hpp"
#include "tools/contract/window_rows/shape_trial.hpp"
#include "tools/contract/window_rows/variants.hpp"

namespace broach::contract::window_rows {
namespace {

// Elements of a cache that a longer declaration may take: the promise does not depend on it, the
// machine's memory does.
constexpr std::int64_t kMostCacheElems = std::int64_t{1} << 26;
constexpr std::int32_t kLongerTimes = 16;

// `rows` of the base's rows in another order, each at several places.
std::vector<std::int32_t> mixed_rows(std::int32_t rows, const std::vector<std::int32_t>& base) {
  std::vector<std::int32_t> chosen;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    chosen.push_back(base[base.size() - 1 - i % base.size()]);
  }
  std::rotate(chosen.begin(), chosen.begin() + rows / 3, chosen.end());
  return chosen;
}

void check_range(ShapeTrial& trial) {
  auto range = check_outputs(trial.problem(), trial.out(), trial.input().options.threads);
  if (!range) return trial.report().fail(range.error().message);
  trial.report().judge(*range, trial.input().tried->name);
}

void check_digest(ShapeTrial& trial) {
  const std::string_view pinned = trial.input().options.digest;
  if (pinned.empty()) return;
  const std::string digest = digest_of(trial.problem(), trial.out());
  trial.report().comparisons += trial.out().size();
  if (digest == pinned) return;
  trial.report().fail(fmt::format("the outputs' digest is {}, pinned is {}", digest, pinned));
}

// Promise 9: the host target's bits.
void check_host(ShapeTrial& trial) {
  if (trial.input().options.host == nullptr) return;
  auto kernel = Kernel::load(*trial.input().options.host, trial.input().kernel->shape());
  if (!kernel) return trial.report().fail("host: " + kernel.error().message);
  const Problem& problem = trial.problem();
  trial.compare(kernel->run(problem), problem, first_rows(problem.rows), "the host target");
}

// Promise 1: alone, and in batches of 3, 17 and 64, at other indices.
void check_batches(ShapeTrial& trial) {
  const std::vector<std::int32_t> own = own_rows(trial.problem());
  if (own.empty()) {
    trial.report().notes.push_back("every row sees keys behind it: none can stand alone");
    return;
  }
  for (const std::int32_t row : {own.front(), own[own.size() / 2], own.back()}) {
    trial.batch({row}, fmt::format("row {} alone", row));
  }
  for (const std::int32_t rows : {3, 17, 64}) {
    if (rows > trial.input().tried->largest_batch) break;
    trial.batch(mixed_rows(rows, own), fmt::format("a batch of {}", rows));
  }
}

// Promise 2: other slots, a longer declaration; and other strides.
void check_placement(ShapeTrial& trial) {
  const Kernel& kernel = *trial.input().kernel;
  const Recipe& base = trial.input().tried->recipe;
  Recipe recipe = base;
  std::int32_t streams = 0;
  for (const RowAt& row : recipe.rows) streams = std::max(streams, row.stream + 1);
  for (std::int32_t i = streams; i-- > 0;) recipe.slot_of_stream.push_back(i + 1);
  recipe.slot_count = streams + 2;
  trial.placed(kernel, recipe, "other slots");

  recipe = base;
  recipe.order = recipe.order == CacheOrder::kHeadsFirst ? CacheOrder::kPositionsFirst
                                                         : CacheOrder::kHeadsFirst;
  recipe.padding += 8;
  trial.placed(kernel, recipe, "other strides");

  recipe = base;
  if (recipe.shape.kv_layout.kind == KvLayoutKind::kRing) return;  // A longer ring is a variant.
  const auto elems = static_cast<std::int64_t>(trial.problem().k.size());
  if (elems * kLongerTimes > kMostCacheElems) {
    trial.report().notes.push_back("the cache is too large to be declared 16 times longer here");
    return;
  }
  recipe.length = trial.problem().length * kLongerTimes;
  trial.placed(kernel, recipe, "a cache declared 16 times longer");
}

// Promise 8: any assignment of tiles to blocks.
void check_spread(ShapeTrial& trial) {
  const Kernel& kernel = *trial.input().kernel;
  if (!is_tile64(kernel.shape().arith) || kernel.shape().form != Form::kDecode) return;
  if (trial.input().tried->twins == Twins::kNone) return;
  const Problem& problem = trial.problem();
  for (const std::uint32_t multiprocessors : {1U, 16U, 132U}) {
    auto spread = Kernel::load(kernel.bench(), kernel.shape(), {}, multiprocessors);
    if (!spread) return trial.report().fail(spread.error().message);
    trial.compare(spread->run(problem), problem, first_rows(problem.rows),
                  fmt::format("spread over {} multiprocessors", multiprocessors));
  }
}

// Promises 2, 4 and 5: longer rings, other layouts, the generic kernel.
void check_variants(ShapeTrial& trial) {
  const Bench& bench = trial.input().kernel->bench();
  for (const ShapeVariant& variant : variants_of(*trial.input().tried)) {
    if (auto served = specializer::serve(variant.shape, bench.device->target()); !served) {
      trial.report().notes.push_back(variant.name + " is not served: " + served.error().message);
      continue;
    }
    auto kernel = Kernel::load(bench, variant.shape, variant.variant);
    if (!kernel) {
      trial.report().fail(variant.name + ": " + kernel.error().message);
      continue;
    }
    Recipe recipe = trial.input().tried->recipe;
    recipe.shape = variant.shape;
    trial.placed(*kernel, recipe, variant.name);
  }
}

}  // namespace

GateReport gate_shapes(const GateInput& input) {
  GateReport report;
  report.gate = Gate::kShapes;
  ShapeTrial trial(input, report);
  if (!trial.begin()) return report;
  check_range(trial);
  if (input.options.ends_with(report)) return report;
  check_digest(trial);
  check_host(trial);
  check_batches(trial);
  check_placement(trial);
  check_spread(trial);
  check_variants(trial);
  if (trial.problem().is_prefill()) check_prefill_promises(trial);
  return report;
}

}  // namespace broach::contract::window_rows
