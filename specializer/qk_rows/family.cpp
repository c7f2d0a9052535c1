#include "specializer/qk_rows/family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "kernel_src/qk_rows/names.cuh"
#include "specializer/common_choices.hpp"
#include "specializer/qk_rows/shape.hpp"

namespace broach::specializer::qk_rows {
namespace {

constexpr std::uint32_t kHeadDims[] = {64, 80, 96, 112, 128, 192, 256, 512};
constexpr std::uint32_t kMaxRatio = 32;
// Index arithmetic in the kernels is 32-bit and signed.
constexpr std::uint32_t kMaxRing = 1U << 30;
constexpr std::uint32_t kMaxPage = 1U << 16;

struct PlantedFault {
  std::string_view name;
  std::string_view enumerator;  // kernel_src/qk_rows/names.cuh's Control
};
constexpr PlantedFault kPlantedFaults[] = {
    {"rope_unrounded", "kRopeUnrounded"},
    {"norm_unrounded", "kNormUnrounded"},
    {"wrong_pairing", "kWrongPairing"},
};

Error refused(std::string message) {
  return Error{ErrorCode::kInvalidArgument, "qk_rows " + std::move(message), ""};
}

Result<void> check_layout(const KvLayout& layout) {
  switch (layout.kind) {
    case KvLayoutKind::kLinear:
      if (layout.length == 0) return {};
      return refused(
          fmt::format("kv_layout=linear takes no length; this shape has {}", layout.length));
    case KvLayoutKind::kRing:
      if (layout.length >= 1 && layout.length <= kMaxRing) return {};
      return refused(fmt::format("kv_layout=ring({}) needs a ring of 1..{} positions",
                                 layout.length, kMaxRing));
    case KvLayoutKind::kPaged:
      if (layout.length >= 1 && layout.length <= kMaxPage) return {};
      return refused(fmt::format("kv_layout=paged({}) needs a page of 1..{} positions",
                                 layout.length, kMaxPage));
  }
  return refused("kv_layout is not one of linear, ring, paged");
}

Result<void> check_typed(const QkRowsShape& shape) {
  if (std::find(std::begin(kHeadDims), std::end(kHeadDims), shape.head_dim) ==
      std::end(kHeadDims)) {
    return refused(fmt::format("head_dim={} is not served; {} are", shape.head_dim,
                               fmt::join(kHeadDims, ", ")));
  }
  if (shape.gqa_ratio < 1 || shape.gqa_ratio > kMaxRatio) {
    return refused(fmt::format("gqa_ratio={} is not served; 1..{} query heads a KV head are",
                               shape.gqa_ratio, kMaxRatio));
  }
  if (shape.rope_dim % 2 != 0 || shape.rope_dim > shape.head_dim) {
    return refused(fmt::format("rope_dim={} is not served; even numbers from 0 to head_dim={} are",
                               shape.rope_dim, shape.head_dim));
  }
  return check_layout(shape.kv_layout);
}

/// The shape without choices that change nothing, so that two of them are not two kernels.
QkRowsShape settled(QkRowsShape shape) {
  if (shape.norm == HeadNorm::kNone || shape.rope_dim == 0) shape.order = QkOrder::kRopeNorm;
  if (shape.rope_dim == 0) shape.rope_style = RopeStyle::kHalf;
  return shape;
}

std::string_view norm_enumerator(HeadNorm norm) {
  switch (norm) {
    case HeadNorm::kNone:
      return "kNone";
    case HeadNorm::kRms:
      return "kRms";
    case HeadNorm::kL2:
      return "kL2";
  }
  return "kNone";
}

std::string main_source(const QkRowsShape& shape, const Variant& variant) {
  const bool generic = on(variant.generic);
  const KvLayout layout = generic ? KvLayout{} : shape.kv_layout;
  const auto* const fault =
      std::find_if(std::begin(kPlantedFaults), std::end(kPlantedFaults),
                   [&](const PlantedFault& one) { return one.name == variant.control; });
  std::string source =
      "#include \"attention/cache_rows.cuh\"\n"
      "#include \"common/half.cuh\"\n"
      "#include \"qk_rows/names.cuh\"\n\n"
      "namespace broach::qk_rows {\n\n";
  const auto constant = [&](std::string_view type, std::string_view name, const auto& value) {
    source += fmt::format("constexpr {} {} = {};\n", type, name, value);
  };
  constant("int", "kHeadDim", shape.head_dim);
  constant("int", "kRatio", generic ? 0 : shape.gqa_ratio);
  constant("int", "kRopeDim", generic ? 0 : shape.rope_dim);
  constant("RopeStyle", "kRopeStyle",
           shape.rope_style == RopeStyle::kHalf ? "RopeStyle::kHalf" : "RopeStyle::kInterleaved");
  constant("Norm", "kNorm", fmt::format("Norm::{}", norm_enumerator(shape.norm)));
  constant("Order", "kOrder",
           shape.order == QkOrder::kRopeNorm ? "Order::kRopeNorm" : "Order::kNormRope");
  constant("bool", "kScalesQ", on(shape.q_scale));
  constant("CacheLayout", "kLayout",
           fmt::format("CacheLayout::{}", layout_enumerator(layout.kind)));
  constant("int", "kLayoutLength", layout.length);
  constant("Half", "kHalf", shape.dtype == Dtype::kBf16 ? "Half::kBf16" : "Half::kF16");
  constant("bool", "kChecked", on(shape.checked));
  constant("bool", "kGeneric", generic);
  constant(
      "Control", "kControl",
      fmt::format("Control::{}", fault == std::end(kPlantedFaults) ? "kNone" : fault->enumerator));
  source += "\n}  // namespace broach::qk_rows\n\n#include \"qk_rows/qk_rows.cuh\"\n";
  return source;
}

class QkRowsFamily final : public Family {
 public:
  std::string_view name() const noexcept override { return "qk_rows"; }
  std::span<const Field> fields() const noexcept override { return kFields; }

  Result<void> check_ranges(const Shape& shape) const override {
    return check_typed(typed_of<QkRowsShape>(shape));
  }

  Result<ServedShape> serve(const Shape& shape, const Target& target) const override {
    const auto typed = typed_of<QkRowsShape>(shape);
    if (auto ranges = check_typed(typed); !ranges) return ranges.error();
    return served(shape_of(settled(typed)), target);
  }

  Result<Rendered> render(const ServedShape& served, const Variant& variant) const override {
    return Rendered{main_source(typed_of<QkRowsShape>(served.shape()), variant),
                    {{"broach_qk_rows", broach::qk_rows::kThreads, 0, 0}}};
  }

  std::string_view control_needs(std::string_view control, const ServedShape& served,
                                 const Variant& /*variant*/) const override {
    const auto shape = typed_of<QkRowsShape>(served.shape());
    if (control == "wrong_pairing" && shape.rope_dim == 0) return "rope_dim of 2 or more";
    if (control == "norm_unrounded" && shape.norm == HeadNorm::kNone) return "norm=rms or norm=l2";
    // The last step's rounding is the output's own.
    if (control == "norm_unrounded" && shape.order == QkOrder::kRopeNorm && !on(shape.q_scale)) {
      return "order=norm_rope or q_scale=on";
    }
    if (control == "rope_unrounded" && shape.rope_dim == 0) return "rope_dim of 2 or more";
    if (control == "rope_unrounded" && shape.norm == HeadNorm::kNone && !on(shape.q_scale)) {
      return "a norm or q_scale=on";
    }
    return {};
  }
};

}  // namespace

const Family& family() noexcept {
  static constinit const QkRowsFamily kFamily;
  return kFamily;
}

}  // namespace broach::specializer::qk_rows
