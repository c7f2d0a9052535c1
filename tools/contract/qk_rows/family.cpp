#include "tools/contract/qk_rows/family.hpp"

#include <fmt/core.h>

#include <iterator>
#include <memory>
#include <utility>

#include "kernel_src/embedded.hpp"
#include "specializer/qk_rows/shape.hpp"
#include "tools/contract/harness/digests.hpp"
#include "tools/contract/qk_rows/runner.hpp"
#include "tools/contract/qk_rows/trial.hpp"

namespace broach {
extern const std::span<const EmbeddedFile> kQkRowsDigests;
}  // namespace broach

namespace broach::contract::qk_rows {
namespace {

using specializer::Target;

const PinnedDigests& pinned_digests() {
  static const PinnedDigests kDigests(kQkRowsDigests.front().bytes);
  return kDigests;
}

class QkRowsCase final : public Case {
 public:
  QkRowsCase(std::string name, Recipe recipe, specializer::Variant variant = {})
      : Case(std::move(name)), recipe_(std::move(recipe)), variant_(std::move(variant)) {}

  std::string shape_json() const override { return specializer::to_json(recipe_.shape); }
  std::string_view pinned_digest() const override { return pinned_digests().of(name()); }
  // Explicit operations alone: every chip's.
  bool has_pinned_bits(const Target& /*target*/) const override { return true; }

  Result<specializer::Plan> plan(const Target& target) const override {
    return specializer::plan(recipe_.shape, target, variant_);
  }
  std::vector<specializer::Plan> twins(const Target& target) const override {
    std::vector<specializer::Plan> plans;
    if (!variant_.control.empty()) return plans;
    auto generic = specializer::plan(recipe_.shape, target, {"", Switch::kOn});
    if (generic) plans.push_back(std::move(*generic));
    return plans;
  }
  Result<std::unique_ptr<Trial>> load(const Bench& bench) const override {
    return load_trial(bench, recipe_, variant_);
  }

 private:
  Recipe recipe_;
  specializer::Variant variant_;
};

QkRowsShape shape_of(std::uint32_t head_dim, std::uint32_t rope_dim, HeadNorm norm, QkOrder order) {
  QkRowsShape shape;
  shape.head_dim = head_dim;
  shape.gqa_ratio = 2;
  shape.rope_dim = rope_dim;
  shape.norm = norm;
  shape.order = order;
  return shape;
}

// A third of the rows past position 199,800, in a ring where the layout is one.
Recipe recipe_of(const QkRowsShape& shape, std::int32_t rows) {
  Recipe recipe;
  recipe.shape = shape;
  recipe.length = 200'064;
  const bool ring = shape.kv_layout.kind == KvLayoutKind::kRing;
  if (!ring) recipe.length = 256;
  for (std::int32_t i = 0; i < rows; ++i) {
    const std::int32_t far = ring ? 199'801 + 17 * i : 200 + i;
    recipe.rows.push_back({i % 2, i % 3 == 2 ? far : 5 * i});
  }
  return recipe;
}

std::string name_of(std::string_view what, const QkRowsShape& shape) {
  return fmt::format(
      "{} D{} G{} rope {} {} {} {}{}{}{}", what, shape.head_dim, shape.gqa_ratio, shape.rope_dim,
      specializer::name_of(shape.rope_style), specializer::name_of(shape.norm),
      specializer::name_of(shape.order), shape.q_scale == Switch::kOn ? " scaled" : "",
      shape.dtype == Dtype::kF16 ? " f16" : "", shape.checked == Switch::kOn ? " checked" : "");
}

// Every norm, order, style, layout, type and head dim.
std::vector<std::pair<std::string, Recipe>> all_cases(bool host) {
  std::vector<QkRowsShape> shapes{
      shape_of(64, 64, HeadNorm::kL2, QkOrder::kRopeNorm),
      shape_of(80, 40, HeadNorm::kRms, QkOrder::kNormRope),
      shape_of(96, 0, HeadNorm::kNone, QkOrder::kRopeNorm),
      shape_of(112, 0, HeadNorm::kRms, QkOrder::kRopeNorm),
      shape_of(128, 64, HeadNorm::kRms, QkOrder::kNormRope),
      shape_of(128, 128, HeadNorm::kNone, QkOrder::kRopeNorm),
      shape_of(192, 64, HeadNorm::kL2, QkOrder::kNormRope),
      shape_of(256, 256, HeadNorm::kRms, QkOrder::kRopeNorm),
      shape_of(512, 128, HeadNorm::kRms, QkOrder::kNormRope),
  };
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    shapes[i].rope_style = i % 2 == 1 ? RopeStyle::kInterleaved : RopeStyle::kHalf;
    shapes[i].q_scale = i % 3 == 0 ? Switch::kOn : Switch::kOff;
    shapes[i].dtype = i % 4 == 3 ? Dtype::kF16 : Dtype::kBf16;
    shapes[i].checked = i == 4 ? Switch::kOn : Switch::kOff;
    if (i % 3 == 1) shapes[i].kv_layout = {KvLayoutKind::kRing, 64};
    if (i % 3 == 2) shapes[i].kv_layout = {KvLayoutKind::kPaged, 16};
  }
  shapes[5].gqa_ratio = 7;
  std::vector<std::pair<std::string, Recipe>> cases;
  for (const QkRowsShape& shape : shapes) {
    cases.emplace_back(name_of("rows", shape), recipe_of(shape, 7));
  }
  // A looped nGPT model: 16 query heads over 4 of 256 dims.
  QkRowsShape looped = shape_of(256, 256, HeadNorm::kL2, QkOrder::kRopeNorm);
  looped.gqa_ratio = 4;
  looped.q_scale = Switch::kOn;
  looped.kv_layout = {KvLayoutKind::kRing, 1024};
  Recipe served = recipe_of(looped, host ? 9 : 129);
  served.kv_heads = 4;
  served.streams = 2;
  cases.emplace_back(name_of(host ? "looped nGPT, cut," : "looped nGPT,", looped), served);
  return cases;
}

struct PlantedFault {
  std::string_view name;
  std::string_view words;
  std::string_view why;
};
constexpr PlantedFault kFaults[] = {
    {"rope_unrounded", "the rotated head is not rounded before its norm",
     "half a unit of the rotated value moves the norm's result across roundings"},
    {"norm_unrounded", "q is not rounded between its norm and its scale",
     "half a unit of the normalised value moves the scaled one across roundings"},
    {"wrong_pairing", "dims pair up in the other style", "other pairs, other sums"},
};

// A generic kernel has the layout's and the rotation's sizes beside the masks.
constexpr Finding kKnown[] = {
    {"broach_qk_rows", "gfx8", kScalars, kScalarsInLanes, scalars(64)},
    {"broach_qk_rows", "gfx9", kScalars, kScalarsInLanes, scalars(64)},
};

class QkRowsFamily final : public ContractFamily {
 public:
  std::string_view name() const override { return "qk_rows"; }

  std::vector<std::shared_ptr<const Case>> cases(const Target& target,
                                                 Sweep /*sweep*/) const override {
    std::vector<std::shared_ptr<const Case>> cases;
    for (auto& [name, recipe] : all_cases(target.vendor == specializer::Vendor::kHost)) {
      cases.push_back(std::make_shared<QkRowsCase>(std::move(name), std::move(recipe)));
    }
    return cases;
  }

  std::vector<Control> controls(const Target& /*target*/) const override {
    std::vector<Control> controls;
    QkRowsShape shape = shape_of(64, 64, HeadNorm::kL2, QkOrder::kRopeNorm);
    shape.q_scale = Switch::kOn;
    for (const PlantedFault& fault : kFaults) {
      controls.push_back(
          {fault.name, "rope_norm l2", fault.words, Gate::kShapes, fault.why,
           std::make_shared<QkRowsCase>(fmt::format("control {}", fault.name), recipe_of(shape, 9),
                                        specializer::Variant{std::string(fault.name)})});
    }
    return controls;
  }

  std::vector<LimitKernel> limit_kernels(LimitDepth depth) const override {
    std::vector<LimitKernel> kernels;
    const auto add = [&](const QkRowsShape& shape, const specializer::Variant& variant) {
      LimitKernel kernel;
      kernel.kind = "qk_rows";
      kernel.findings.assign(std::begin(kKnown), std::end(kKnown));
      kernel.plan = [shape,
                     variant](const Target& target) -> Result<std::optional<specializer::Plan>> {
        auto plan = specializer::plan(shape, target, variant);
        if (!plan) return plan.error();
        return std::optional(std::move(*plan));
      };
      kernels.push_back(std::move(kernel));
    };
    for (const std::uint32_t head_dim : {64U, 80U, 96U, 112U, 128U, 192U, 256U, 512U}) {
      if (depth == LimitDepth::kOneOfEach && head_dim != 64) continue;
      if (depth == LimitDepth::kWidest && head_dim != 512) continue;
      QkRowsShape shape = shape_of(head_dim, head_dim / 2, HeadNorm::kRms, QkOrder::kNormRope);
      shape.q_scale = Switch::kOn;
      add(shape, {});
      if (depth != LimitDepth::kOneOfEach) add(shape, {"", Switch::kOn});
    }
    return kernels;
  }

  std::vector<Finding> findings() const override { return {std::begin(kKnown), std::end(kKnown)}; }

  std::vector<ListedBound> bounds() const override {
    constexpr double kU = 0x1p-24;
    return {
        {"a sine or cosine", {{"relative", 4 * kU}}, "two units, held over every angle to 2^20"},
        {"a sum of squares", {{"relative", 15 * kU}}, "a chain of 8 and a tree of 6 levels"},
        {"a norm's factor", {{"relative", 4 * kU}}, "mean, epsilon, root and quotient"}};
  }

  Result<std::unique_ptr<const Runner>> runner(const RunRequest& request) const override {
    return runner_of(request);
  }
};

}  // namespace

const ContractFamily& family() {
  static const QkRowsFamily kFamily;
  return kFamily;
}

}  // namespace broach::contract::qk_rows
