#include "specializer/sparse_rows/render.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "kernel_src/sparse_rows/layout.h"
#include "specializer/common_choices.hpp"
#include "specializer/sparse_rows/geometry.hpp"

namespace broach::specializer::sparse_rows {
namespace {

using broach::sparse_rows::kMmaThreadsMmaSync;

// A generic kernel serves every ratio: its heads are padded to the largest.
constexpr int kLargestRatio = 16;

// kernel_src/sparse_rows/scalar.cuh
constexpr std::uint32_t kScalarThreads = 256;
constexpr std::uint32_t kMergeThreads = 128;

enum class Has : std::uint8_t { kBoth, kScalar, kMma };
struct PlantedFault {
  std::string_view name;
  std::string_view enumerator;  // kernel_src/sparse_rows/names.cuh's Control
  Has has;
};
constexpr PlantedFault kPlantedFaults[] = {
    {"unmasked_block", "kUnmaskedBlock", Has::kBoth},
    {"causal_off_by_one", "kCausalOffByOne", Has::kBoth},
    {"ratio_off_by_one", "kRatioOffByOne", Has::kBoth},
    {"union_unmasked", "kUnionUnmasked", Has::kMma},
    {"part_dropped", "kPartDropped", Has::kMma},
    {"rerun_dropped", "kRerunDropped", Has::kBoth},
    {"merge_unscaled", "kMergeUnscaled", Has::kBoth},
};

/// A source whose constants are added by name.
class Source {
 public:
  template <class Value>
  void constant(std::string_view type, std::string_view name, const Value& value) {
    text_ += fmt::format("constexpr {} {} = {};\n", type, name, value);
  }
  std::string finish(std::string_view header) && {
    text_ += fmt::format("\n}}  // namespace broach::sparse_rows\n\n#include \"{}\"\n", header);
    return std::move(text_);
  }

 private:
  std::string text_ =
      "#include \"common/half.cuh\"\n"
      "#include \"sparse_rows/names.cuh\"\n\n"
      "namespace broach::sparse_rows {\n\n";
};

}  // namespace

Rendered render(const SparseRowsShape& shape, const Target& target, const Variant& variant) {
  const bool generic = on(variant.generic);
  const bool is_mma = shape.tile == SparseTile::kMma;
  const KvLayout layout = generic ? KvLayout{} : shape.kv_layout;
  const auto* const fault = std::find_if(
      std::begin(kPlantedFaults), std::end(kPlantedFaults), [&](const PlantedFault& one) {
        return one.name == variant.control &&
               (one.has == Has::kBoth || (one.has == Has::kMma) == is_mma);
      });
  Source source;
  source.constant("int", "kHeadDim", shape.head_dim);
  source.constant("int", "kRatio", generic ? 0 : shape.gqa_ratio);
  source.constant("int", "kCompressRatio", generic ? 0 : shape.compress_ratio);
  source.constant("int", "kPartCount", generic ? 0 : shape.part_count);
  source.constant("CacheLayout", "kLayout",
                  fmt::format("CacheLayout::{}", layout_enumerator(layout.kind)));
  source.constant("int", "kLayoutLength", layout.length);
  source.constant("Half", "kHalf", shape.dtype == Dtype::kBf16 ? "Half::kBf16" : "Half::kF16");
  source.constant("QueryType", "kQueryType",
                  shape.q_dtype == QueryDtype::kF32 ? "QueryType::kF32" : "QueryType::kCache");
  source.constant("bool", "kChecked", on(shape.checked));
  source.constant("bool", "kGeneric", generic);
  source.constant(
      "Control", "kControl",
      fmt::format("Control::{}", fault == std::end(kPlantedFaults) ? "kNone" : fault->enumerator));
  if (!is_mma) {
    return {std::move(source).finish("sparse_rows/scalar.cuh"),
            {{"broach_sparse_rows_scalar", kScalarThreads, 0, 0},
             {"broach_sparse_rows_merge", kMergeThreads, 0, 0}}};
  }
  // A served shape has one; a generic kernel that does not fit is refused by its size.
  const int ratio = generic ? kLargestRatio : static_cast<int>(shape.gqa_ratio);
  const MmaGeometry geometry =
      mma_geometry(shape, target, ratio)
          .value_or(
              MmaGeometry{kMmaThreadsMmaSync, 1, static_cast<int>(shape.head_dim), 2, 1 << 30});
  source.constant("int", "kMmaThreads", geometry.threads);
  source.constant("int", "kTileRows", geometry.tile_rows);
  source.constant("int", "kPieceDims", geometry.piece_dims);
  source.constant("int", "kStages", geometry.stages);
  source.constant("int", "kPParts", shape.p_parts);
  source.constant("int", "kMmaSharedBytes", geometry.shared_bytes);
  return {std::move(source).finish("sparse_rows/mma.cuh"),
          {{"broach_sparse_rows_mma", static_cast<std::uint32_t>(geometry.threads),
            static_cast<std::uint32_t>(geometry.shared_bytes),
            static_cast<std::uint32_t>(geometry.tile_rows)}}};
}

}  // namespace broach::specializer::sparse_rows
