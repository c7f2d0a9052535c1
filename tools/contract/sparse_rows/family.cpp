#include "tools/contract/sparse_rows/family.hpp"

#include <fmt/core.h>

#include <iterator>
#include <memory>
#include <utility>

#include "kernel_src/embedded.hpp"
#include "specializer/sparse_rows/shape.hpp"
#include "tools/contract/harness/digests.hpp"
#include "tools/contract/sparse_rows/cases.hpp"
#include "tools/contract/sparse_rows/runner.hpp"
#include "tools/contract/sparse_rows/trial.hpp"

namespace broach {
extern const std::span<const EmbeddedFile> kSparseRowsDigests;
}  // namespace broach

namespace broach::contract::sparse_rows {
namespace {

using specializer::Target;

const PinnedDigests& pinned_digests() {
  static const PinnedDigests kDigests(kSparseRowsDigests.front().bytes);
  return kDigests;
}

class SparseRowsCase final : public Case {
 public:
  explicit SparseRowsCase(CaseSpec spec, specializer::Variant variant = {})
      : Case(spec.name), spec_(std::move(spec)), variant_(std::move(variant)) {}

  std::string shape_json() const override { return specializer::to_json(spec_.recipe.shape); }
  std::string_view pinned_digest() const override { return pinned_digests().of(name()); }

  // The digests are of sm_90's MMA step; what uses none has every chip's bits.
  bool has_pinned_bits(const Target& target) const override {
    return spec_.recipe.shape.tile == SparseTile::kScalar ||
           target.mma_step == specializer::MmaStep::kOneK16;
  }

  Result<specializer::Plan> plan(const Target& target) const override {
    return specializer::plan(spec_.recipe.shape, target, variant_);
  }

  std::vector<specializer::Plan> twins(const Target& target) const override {
    std::vector<specializer::Plan> plans;
    if (!variant_.control.empty()) return plans;
    const auto add = [&](const SparseRowsShape& shape, const specializer::Variant& variant) {
      auto plan = specializer::plan(shape, target, variant);
      if (plan) plans.push_back(std::move(*plan));
    };
    add(spec_.recipe.shape, {"", Switch::kOn});
    if (spec_.twins == Twins::kAll) add(in_another_layout(spec_.recipe.shape), {});
    return plans;
  }

  Result<std::unique_ptr<Trial>> load(const Bench& bench) const override {
    return load_trial(bench, spec_, variant_);
  }

 private:
  CaseSpec spec_;
  specializer::Variant variant_;
};

struct PlantedFault {
  std::string_view name;
  std::string_view words;
  Gate gate;
  std::string_view why;
  bool scalar;
  Values values = Values::kDrawn;
};

constexpr PlantedFault kFaults[] = {
    {"unmasked_block", "a row sees the block behind its last selected one", Gate::kShapes,
     "a block that was not selected weighs as much as the others", true},
    {"causal_off_by_one", "a row does not see its own key", Gate::kShapes,
     "a row with few keys loses one of them", true},
    {"ratio_off_by_one", "blocks begin where they would with one key more in each", Gate::kShapes,
     "other keys, other scores", true},
    {"union_unmasked", "a tile's rows see what any of them selected", Gate::kShapes,
     "an empty selection beside a dense one sees every key", false},
    {"part_dropped", "P is carried as two 16-bit parts instead of three", Gate::kShapes,
     "where V is a lone power of two P itself comes out, and 16 bits of it are short of the 24 "
     "that its range allows",
     false, Values::kLone},
    {"merge_unscaled", "tiles or parts join without their exponential of the maximum",
     Gate::kShapes, "maxima of parts differ by more than the range", true},
    {"rerun_dropped", "a non-finite output is not computed again in float64", Gate::kNonFinite,
     "an infinity at a weight that fp32 holds as nothing comes out as NaN", true},
};

Control control_of(const PlantedFault& fault, SparseTile tile) {
  CaseSpec tried = control_case(tile, fault.values);
  tried.name = fmt::format("control {} ({})", fault.name, specializer::name_of(tile));
  return {fault.name,
          std::string(specializer::name_of(tile)),
          fault.words,
          fault.gate,
          fault.why,
          std::make_shared<SparseRowsCase>(
              std::move(tried), specializer::Variant{std::string(fault.name), Switch::kOff})};
}

// The selection, the layout and a bound of each tile's loads are a wave's, and so are their masks;
// a generic kernel has strides and ratios beside them.
constexpr std::string_view kScalar = "broach_sparse_rows_scalar";
constexpr std::string_view kMma = "broach_sparse_rows_mma";
constexpr Finding kKnown[] = {
    {kScalar, "gfx8", kScalars, kScalarsInLanes, scalars(64)},
    {kScalar, "gfx9", kScalars, kScalarsInLanes, scalars(96)},
    {kScalar, "gfx11", kScalars, kScalarsInLanes, scalars(32)},
    {kMma, "gfx9", kScalars, kScalarsInLanes, scalars(112)},
    {kMma, "gfx11", kScalars, kScalarsInLanes, scalars(64)},
};

LimitKernel limit_kernel(const SparseRowsShape& shape, const specializer::Variant& variant = {}) {
  LimitKernel kernel;
  kernel.kind = std::string(specializer::name_of(shape.tile));
  kernel.findings.assign(std::begin(kKnown), std::end(kKnown));
  kernel.plan = [shape, variant](const Target& target) -> Result<std::optional<specializer::Plan>> {
    const auto served = specializer::serve(shape, target);
    if (!served) return std::optional<specializer::Plan>();
    auto plan = specializer::plan(*served, variant);
    // A generic kernel has the widest ratio's tiles, which a small chip may not hold.
    if (!plan && plan.error().code == ErrorCode::kLimitExceeded) {
      return std::optional<specializer::Plan>();
    }
    if (!plan) return plan.error();
    return std::optional(std::move(*plan));
  };
  return kernel;
}

class SparseRowsFamily final : public ContractFamily {
 public:
  std::string_view name() const override { return "sparse_rows"; }

  std::vector<std::shared_ptr<const Case>> cases(const Target& target, Sweep sweep) const override {
    std::vector<CaseSpec> specs = ragged_cases();
    for (CaseSpec& one : served_cases(target.vendor == specializer::Vendor::kHost)) {
      specs.push_back(std::move(one));
    }
    std::vector<std::shared_ptr<const Case>> cases;
    for (CaseSpec& one : specs) {
      if (sweep == Sweep::kQuick) {
        if (one.sweep == Sweep::kWhole) continue;
        one.twins = one.quick_twins;
      }
      if (!specializer::serve(one.recipe.shape, target)) continue;
      cases.push_back(std::make_shared<SparseRowsCase>(std::move(one)));
    }
    return cases;
  }

  std::vector<Control> controls(const Target& target) const override {
    std::vector<Control> controls;
    for (const SparseTile tile : {SparseTile::kScalar, SparseTile::kMma}) {
      for (const PlantedFault& fault : kFaults) {
        if (tile == SparseTile::kScalar && !fault.scalar) continue;
        if (!specializer::serve(control_case(tile, fault.values).recipe.shape, target)) continue;
        controls.push_back(control_of(fault, tile));
      }
    }
    return controls;
  }

  std::vector<LimitKernel> limit_kernels(LimitDepth depth) const override {
    std::vector<LimitKernel> kernels;
    for (const SparseTile tile : {SparseTile::kScalar, SparseTile::kMma}) {
      SparseRowsShape shape;
      shape.tile = tile;
      shape.gqa_ratio = 12;
      shape.compress_ratio = 4;
      for (const std::uint32_t head_dim : {64U, 80U, 96U, 112U, 128U, 192U, 256U, 512U}) {
        if (depth == LimitDepth::kOneOfEach && head_dim != 64) continue;
        if (depth == LimitDepth::kWidest && head_dim != 256) continue;
        shape.head_dim = head_dim;
        kernels.push_back(limit_kernel(shape));
        if (depth == LimitDepth::kOneOfEach) continue;
        kernels.push_back(limit_kernel(shape, {"", Switch::kOn}));
        SparseRowsShape f32 = shape;
        f32.q_dtype = QueryDtype::kF32;
        kernels.push_back(limit_kernel(f32));
      }
    }
    return kernels;
  }

  std::vector<Finding> findings() const override { return {std::begin(kKnown), std::end(kKnown)}; }

  std::vector<ListedBound> bounds() const override {
    constexpr double kU = 0x1p-24;
    return {
        {"a score's error, of |scale| sum |q k|",
         {{"scalar", 14 * kU}, {"mma, a step", 36 * kU}},
         "a chain of 8 and a tree of 6 levels; an MMA step truncates 17 terms and their sum"},
        {"P x V's error, of sum p |v|",
         {{"scalar, a key", kU}, {"mma, a step", 36 * kU}},
         "an fma a key; a step a 16-bit part of P"},
        {"P's parts, relative",
         {{"one bf16", 0x1p-8}, {"two", 0x1p-16}, {"three", kU / 2}},
         "a rounding a part"},
    };
  }

  Result<std::unique_ptr<const Runner>> runner(const RunRequest& request) const override {
    return runner_of(request);
  }
};

}  // namespace

const ContractFamily& family() {
  static const SparseRowsFamily kFamily;
  return kFamily;
}

}  // namespace broach::contract::sparse_rows
