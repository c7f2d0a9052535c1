#include "tools/contract/sparse_rows/problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/contract/harness/draws.hpp"
#include "tools/contract/harness/number.hpp"

namespace broach::contract::sparse_rows {
namespace {

// Like real ones: queries near unit RMS, keys an eighth of it, values at unit RMS.
constexpr double kQueryRms = 1.0;
constexpr double kKeyRms = 0.5;
constexpr double kValueRms = 1.0;
constexpr std::int32_t kClusterBlocks = 8;
constexpr std::int32_t kLoneEvery = 64;
constexpr std::int32_t kLoneAt = 7;

double rounded(double value, Dtype dtype) { return value_of(round_to(value, dtype), dtype); }

std::uint64_t name_of(const Recipe& recipe, char tensor, std::uint64_t index) {
  return mixed(mixed(recipe.seed * 131 + static_cast<unsigned char>(tensor)) + index);
}

std::vector<std::int32_t> picked(const Recipe& recipe, std::size_t row) {
  const RowAt& at = recipe.rows[row];
  const auto ratio = static_cast<std::int32_t>(recipe.shape.compress_ratio);
  const std::int32_t all = (at.position + 1) / ratio;
  if (at.pick == Pick::kNone) return {};
  // In clusters: every block of a run has the run's number to be sorted by.
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(all));
  std::iota(blocks.begin(), blocks.end(), 0);
  if (at.pick == Pick::kEvery || at.count >= all) return blocks;
  const std::int32_t run = at.pick == Pick::kClustered ? kClusterBlocks : 1;
  const auto order = [&](std::int32_t block) {
    return name_of(recipe, 'b', row * 65536 + static_cast<std::uint64_t>(block / run));
  };
  std::stable_sort(blocks.begin(), blocks.end(),
                   [&](std::int32_t a, std::int32_t b) { return order(a) < order(b); });
  blocks.resize(static_cast<std::size_t>(at.count));
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

// A mirrored integer: position p of a stream's first half holds what its second half takes back.
float unit_value(const Recipe& recipe, std::int32_t position, std::size_t dim) {
  const double magnitude = static_cast<double>(96 + (dim * 7) % 32);
  return static_cast<float>(position % 512 < 256 ? magnitude
                                                 : -magnitude + (dim % 3 == 0 ? 1 : 0)) *
         (recipe.seed % 2 == 0 ? -1.0F : 1.0F);
}

float value_at(const Recipe& recipe, std::int32_t position, std::size_t dim, std::size_t index) {
  if (recipe.values == Values::kUnit) return unit_value(recipe, position, dim);
  if (recipe.values == Values::kLone) {
    if (position % kLoneEvery != kLoneAt) return 0.0F;
    const float power = std::ldexp(
        1.0F, static_cast<int>((static_cast<std::size_t>(position / kLoneEvery) + dim) % 4));
    return dim % 2 == 0 ? power : -power;
  }
  return static_cast<float>(
      rounded(kValueRms * bell(name_of(recipe, 'v', index)), recipe.shape.dtype));
}

}  // namespace

std::vector<std::int32_t> Problem::keys(std::size_t row) const {
  const auto ratio = static_cast<std::int32_t>(recipe.shape.compress_ratio);
  const std::int32_t position = recipe.rows[row].position;
  std::vector<std::int32_t> out;
  for (const std::int32_t block : blocks[row]) {
    for (std::int32_t i = 0; i < ratio; ++i) out.push_back(block * ratio + i);
  }
  for (std::int32_t key = (position + 1) / ratio * ratio; key <= position; ++key)
    out.push_back(key);
  return out;
}

Problem make_problem(const Recipe& recipe) {
  Problem p;
  p.recipe = recipe;
  const std::size_t d = p.head_dim();
  const Dtype dtype = recipe.shape.dtype;
  const bool f32 = recipe.shape.q_dtype == QueryDtype::kF32;
  for (std::size_t row = 0; row < recipe.rows.size(); ++row) {
    p.blocks.push_back(picked(recipe, row));
    const RowAt& at = recipe.rows[row];
    const auto who =
        static_cast<std::uint64_t>(at.stream) * 1000003 + static_cast<std::uint64_t>(at.position);
    for (std::size_t i = 0; i < static_cast<std::size_t>(p.heads()) * d; ++i) {
      const double value = kQueryRms * bell(name_of(recipe, 'q', who * 65536 + i));
      p.q.push_back(static_cast<float>(f32 ? value : rounded(value, dtype)));
    }
  }
  const std::size_t cells = static_cast<std::size_t>(recipe.streams) *
                            static_cast<std::size_t>(recipe.positions) *
                            static_cast<std::size_t>(recipe.kv_heads) * d;
  p.k.resize(cells);
  p.v.resize(cells);
  for (std::size_t i = 0; i < cells; ++i) {
    const auto position =
        static_cast<std::int32_t>(i / d / static_cast<std::size_t>(recipe.kv_heads) %
                                  static_cast<std::size_t>(recipe.positions));
    const double key =
        recipe.values == Values::kUnit ? 0.0 : kKeyRms * bell(name_of(recipe, 'k', i));
    p.k[i] = static_cast<float>(rounded(key, dtype));
    p.v[i] = value_at(recipe, position, i % d, i);
  }
  return p;
}

Problem with_rows(const Problem& problem, const std::vector<std::size_t>& rows) {
  Problem out = problem;
  out.recipe.rows.clear();
  out.blocks.clear();
  out.q.clear();
  const std::size_t row_elems = static_cast<std::size_t>(problem.heads()) * problem.head_dim();
  for (const std::size_t row : rows) {
    out.recipe.rows.push_back(problem.recipe.rows[row]);
    out.blocks.push_back(problem.blocks[row]);
    const auto from = problem.q.begin() + static_cast<std::ptrdiff_t>(row * row_elems);
    out.q.insert(out.q.end(), from, from + static_cast<std::ptrdiff_t>(row_elems));
  }
  return out;
}

}  // namespace broach::contract::sparse_rows
