#include "tools/contract/sparse_rows/cases.hpp"

#include <fmt/core.h>

#include "specializer/sparse_rows/shape.hpp"

namespace broach::contract::sparse_rows {
namespace {

SparseRowsShape shape_of(SparseTile tile, std::uint32_t head_dim, std::uint32_t gqa_ratio,
                         std::uint32_t compress_ratio) {
  SparseRowsShape shape;
  shape.tile = tile;
  shape.head_dim = head_dim;
  shape.gqa_ratio = gqa_ratio;
  shape.compress_ratio = compress_ratio;
  return shape;
}

std::string name_of(std::string_view what, const SparseRowsShape& shape) {
  return fmt::format("{} {} D{} G{} R{}{}{}{}{}", what, specializer::name_of(shape.tile),
                     shape.head_dim, shape.gqa_ratio, shape.compress_ratio,
                     shape.dtype == Dtype::kF16 ? " f16" : "",
                     shape.q_dtype == QueryDtype::kF32 ? " q f32" : "",
                     shape.tile == SparseTile::kMma ? fmt::format(" P{}", shape.p_parts) : "",
                     shape.checked == Switch::kOn ? " checked" : "");
}

// Rows of two streams beside each other: dense, empty, one block, many; at a block's first and last
// position, around the edges of tiles of 64 keys and of the list's parts.
Recipe ragged(const SparseRowsShape& shape) {
  Recipe recipe;
  recipe.shape = shape;
  recipe.positions = 400;
  const auto r = static_cast<std::int32_t>(shape.compress_ratio);
  recipe.rows = {{0, 255, Pick::kRandom, 20},    {0, 256, Pick::kEvery},
                 {0, 257, Pick::kClustered, 16}, {0, 258, Pick::kNone},
                 {0, 318, Pick::kRandom, 9},     {1, 0, Pick::kEvery},
                 {1, r - 1, Pick::kNone},        {1, 2 * r, Pick::kEvery},
                 {1, 399, Pick::kRandom, 1},     {1, 383, Pick::kEvery}};
  return recipe;
}

CaseSpec ragged_case(const SparseRowsShape& shape, Sweep sweep) {
  return {name_of("ragged", shape), ragged(shape), sweep};
}

}  // namespace

std::vector<CaseSpec> ragged_cases() {
  std::vector<CaseSpec> cases;
  for (const SparseTile tile : {SparseTile::kScalar, SparseTile::kMma}) {
    SparseRowsShape shape = shape_of(tile, 64, 2, 4);
    cases.push_back(ragged_case(shape, Sweep::kQuick));
    shape.checked = Switch::kOn;
    shape.kv_layout = {KvLayoutKind::kPaged, 16};
    cases.push_back(ragged_case(shape, Sweep::kQuick));
    shape = shape_of(tile, 80, 3, 16);
    shape.dtype = Dtype::kF16;
    shape.kv_layout = {KvLayoutKind::kRing, 400};
    shape.p_parts = 2;
    shape.part_count = 5;
    cases.push_back(ragged_case(shape, Sweep::kQuick));
    shape = shape_of(tile, 128, 6, 1);
    shape.q_dtype = QueryDtype::kF32;
    shape.part_count = 1;
    cases.push_back(ragged_case(shape, Sweep::kQuick));
    cases.back().quick_twins = Twins::kAll;
    shape = shape_of(tile, 192, 1, 8);
    shape.p_parts = 1;
    cases.push_back(ragged_case(shape, Sweep::kWhole));
    shape = shape_of(tile, 512, 5, 2);
    cases.push_back(ragged_case(shape, Sweep::kWhole));
    shape = shape_of(tile, 96, 16, 4);
    shape.dtype = Dtype::kF16;
    shape.q_dtype = QueryDtype::kF32;
    cases.push_back(ragged_case(shape, Sweep::kWhole));
  }
  cases.push_back(ragged_case(shape_of(SparseTile::kScalar, 112, 7, 3), Sweep::kWhole));
  // What the narrowest ranges judge: P itself.
  CaseSpec lone = control_case(SparseTile::kMma, Values::kLone);
  lone.name = name_of("lone values", lone.recipe.shape);
  cases.push_back(std::move(lone));
  return cases;
}

std::vector<CaseSpec> served_cases(bool cut) {
  std::vector<CaseSpec> cases;
  const auto add = [&](std::string_view what, Recipe recipe, Sweep sweep = Sweep::kQuick) {
    std::string name = name_of(what, recipe.shape);
    if (cut) name += ", cut";
    cases.push_back({std::move(name), std::move(recipe), sweep});
  };
  for (const SparseTile tile : {SparseTile::kScalar, SparseTile::kMma}) {
    // 24 query heads over 2, blocks of 4, a budget of 512 blocks.
    Recipe slice;
    slice.shape = shape_of(tile, 256, 12, 4);
    slice.shape.q_dtype = QueryDtype::kF32;
    slice.shape.kv_layout = {KvLayoutKind::kPaged, 64};
    slice.streams = 1;
    slice.positions = cut ? 640 : 8192;
    slice.seed = 7;
    for (std::int32_t i = 0; i < (cut ? 5 : 64); ++i) {
      const Pick pick = i % 2 == 0 ? Pick::kRandom : Pick::kClustered;
      slice.rows.push_back({0, slice.positions - 70 + i, pick, cut ? 40 : 512});
    }
    add("24/2 slice", slice);
    Recipe tail = slice;
    tail.shape = shape_of(tile, 256, 6, 4);
    tail.kv_heads = 1;
    tail.rows.resize(cut ? 3 : 17);
    // Each of these two on one tile is enough of a quick sweep: the ragged ones have both on both.
    add("6/1 tail", tail, tile == SparseTile::kMma ? Sweep::kQuick : Sweep::kWhole);
    Recipe dense = slice;
    dense.shape.q_dtype = QueryDtype::kCache;
    dense.rows = {{0, cut ? 300 : 2047, Pick::kEvery}, {0, cut ? 301 : 2048, Pick::kEvery}};
    add("24/2 dense", dense, tile == SparseTile::kScalar ? Sweep::kQuick : Sweep::kWhole);
  }
  // A block-sparse model of blocks of 128: 64 query heads over 4, 16 blocks.
  Recipe wide;
  wide.shape = shape_of(SparseTile::kScalar, 128, 16, 128);
  wide.kv_heads = cut ? 1 : 4;
  wide.streams = 1;
  wide.positions = cut ? 700 : 8192;
  for (std::int32_t i = 0; i < (cut ? 3 : 33); ++i) {
    wide.rows.push_back({0, wide.positions - 60 + i, Pick::kRandom, cut ? 2 : 16});
  }
  add("64/4 blocks of 128", wide);
  return cases;
}

SparseRowsShape in_another_layout(const SparseRowsShape& shape) {
  SparseRowsShape other = shape;
  const bool linear = shape.kv_layout.kind == KvLayoutKind::kLinear;
  other.kv_layout = linear ? KvLayout{KvLayoutKind::kPaged, 16} : KvLayout{};
  return other;
}

CaseSpec control_case(SparseTile tile, Values values) {
  SparseRowsShape shape = shape_of(tile, 64, 4, 4);
  shape.q_dtype = QueryDtype::kF32;
  CaseSpec made{fmt::format("control ({})", specializer::name_of(tile)), ragged(shape)};
  if (values == Values::kLone) {
    // One tile a row and scores near each other: P's own bits come out of the kernel.
    made.recipe.values = values;
    made.recipe.scale = 0x1p-12F;
    made.recipe.rows.clear();
    for (std::int32_t i = 0; i < 24; ++i) {
      made.recipe.rows.push_back({i % 2, 20 + i, Pick::kEvery});
    }
  }
  return made;
}

}  // namespace broach::contract::sparse_rows
