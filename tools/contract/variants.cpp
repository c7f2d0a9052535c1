#include "tools/contract/variants.hpp"

#include <algorithm>

namespace broach::contract {
namespace {

constexpr std::uint32_t kPage = 64;

// A linear cache holds every position; a case whose positions go far would take memory that shows
// nothing more.
constexpr std::int32_t kMostLinear = 65'536;

// The least ring that holds what the case's rows see of each stream together.
std::uint32_t ring_for(const DecodeRecipe& recipe) {
  std::uint32_t ring = recipe.shape.window;
  for (const RowAt& a : recipe.rows) {
    for (const RowAt& b : recipe.rows) {
      if (a.stream != b.stream) continue;
      const auto apart = static_cast<std::uint32_t>(std::max(0, a.position - b.position));
      ring = std::max(ring, recipe.shape.window + apart);
    }
  }
  return ring;
}

}  // namespace

std::vector<ShapeVariant> variants_of(const DecodeCase& decode_case) {
  const DecodeRecipe& recipe = decode_case.recipe;
  const WindowRowsShape& shape = recipe.shape;
  std::vector<ShapeVariant> variants;
  variants.push_back({"the generic kernel", shape, {"", Switch::kOn}});
  if (decode_case.twins == Twins::kGeneric) return variants;
  const auto with_layout = [&](KvLayout layout, std::string name) {
    if (layout == shape.kv_layout) return;
    ShapeVariant variant{std::move(name), shape, {}};
    variant.shape.kv_layout = layout;
    variants.push_back(std::move(variant));
  };
  std::int32_t greatest = 0;
  for (const RowAt& row : recipe.rows) greatest = std::max(greatest, row.position);

  if (shape.kv_layout.kind == KvLayoutKind::kRing) {
    with_layout({KvLayoutKind::kRing, shape.kv_layout.length + 77}, "a longer ring");
  } else if (shape.window > 0) {
    with_layout({KvLayoutKind::kRing, ring_for(recipe)}, "a ring");
  }
  if (greatest < kMostLinear) {
    with_layout({}, "a linear cache");
    with_layout({KvLayoutKind::kPaged, kPage}, "a paged cache");
  }
  return variants;
}

}  // namespace broach::contract
