#include "tools/contract/window_rows/variants.hpp"

#include <algorithm>

namespace broach::contract::window_rows {
namespace {

constexpr std::uint32_t kPage = 64;

// A linear cache holds every position of every stream; a case whose positions go far would take
// memory, and minutes to fill it, that show nothing more.
constexpr std::int64_t kMostLinearElems = std::int64_t{1} << 27;

// The least ring that holds what the case's rows see of each stream together.
std::uint32_t ring_for(const Recipe& recipe) {
  std::uint32_t ring = recipe.shape.window;
  for (const RowAt& a : recipe.rows) {
    for (const RowAt& b : recipe.rows) {
      if (a.stream != b.stream) continue;
      const auto apart = static_cast<std::uint32_t>(std::max(0, a.last_key() - b.position));
      ring = std::max(ring, recipe.shape.window + apart);
    }
  }
  return ring;
}

}  // namespace

std::vector<ShapeVariant> variants_of(const CaseSpec& tried) {
  const Recipe& recipe = tried.recipe;
  const WindowRowsShape& shape = recipe.shape;
  std::vector<ShapeVariant> variants;
  if (tried.twins == Twins::kNone) return variants;
  variants.push_back({"the generic kernel", shape, {"", Switch::kOn}});
  if (tried.twins != Twins::kAll) return variants;
  const auto with_layout = [&](KvLayout layout, std::string name) {
    if (layout == shape.kv_layout) return;
    ShapeVariant variant{std::move(name), shape, {}};
    variant.shape.kv_layout = layout;
    variants.push_back(std::move(variant));
  };
  std::int64_t greatest = 0;
  std::int64_t streams = 1;
  for (const RowAt& row : recipe.rows) {
    greatest = std::max<std::int64_t>(greatest, row.last_key() + 1);
    streams = std::max<std::int64_t>(streams, row.stream + 1);
  }

  if (shape.kv_layout.kind == KvLayoutKind::kRing) {
    with_layout({KvLayoutKind::kRing, shape.kv_layout.length + 77}, "a longer ring");
  } else if (shape.window > 0) {
    with_layout({KvLayoutKind::kRing, ring_for(recipe)}, "a ring");
  }
  if (greatest * streams * recipe.kv_heads * shape.head_dim <= kMostLinearElems) {
    with_layout({}, "a linear cache");
    with_layout({KvLayoutKind::kPaged, kPage}, "a paged cache");
  }
  return variants;
}

std::optional<WindowRowsShape> other_form(const WindowRowsShape& shape) {
  if (!is_tile64(shape.arith) || shape.form != Form::kPrefill) return std::nullopt;
  WindowRowsShape decode = shape;
  decode.form = Form::kDecode;
  return decode;
}

}  // namespace broach::contract::window_rows
