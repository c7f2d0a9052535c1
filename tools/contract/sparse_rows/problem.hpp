#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "broach/sparse_rows.hpp"

namespace broach::contract::sparse_rows {

/// Which blocks a row selects of those that end at or before its position.
enum class Pick : std::uint8_t {
  kEvery,
  kNone,
  kRandom,
  kClustered,  ///< In runs of eight.
};

struct RowAt {
  std::int32_t stream = 0;
  std::int32_t position = 0;
  Pick pick = Pick::kEvery;
  std::int32_t count = 0;  ///< Of random and clustered picks.
};

/// What values a problem's tensors hold.
enum class Values : std::uint8_t {
  kDrawn,  ///< As models have them.
  kLone,   ///< V is a power of two at one position in 64 and zero elsewhere: P itself comes out.
  kUnit,   ///< K is zero, so that every P is 1, and V mirrored integers: the exact sums are known.
};

/// A problem by name: every machine makes the same inputs of it.
struct Recipe {
  SparseRowsShape shape;
  std::int32_t kv_heads = 2;
  std::int32_t streams = 2;
  std::int32_t positions = 0;  ///< Of a stream.
  std::int32_t slot_shift = 0;
  float scale = 0.0625F;
  Values values = Values::kDrawn;
  std::vector<RowAt> rows;
  std::uint64_t seed = 1;
};

/// The tensors of a problem, before any layout.
///
/// Shapes:  H = kv_heads * gqa_ratio; q [rows][H][D]; k, v [streams][positions][kv_heads][D]; all
///          values are ones of the types that the kernel reads.
struct Problem {
  Recipe recipe;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<std::vector<std::int32_t>> blocks;  ///< Of each row, increasing.

  std::size_t head_dim() const noexcept { return recipe.shape.head_dim; }
  std::int32_t heads() const noexcept {
    return recipe.kv_heads * static_cast<std::int32_t>(recipe.shape.gqa_ratio);
  }
  std::size_t q_at(std::size_t row, std::int32_t head) const noexcept {
    return (row * static_cast<std::size_t>(heads()) + static_cast<std::size_t>(head)) * head_dim();
  }
  std::size_t kv_at(std::int32_t stream, std::int32_t position,
                    std::int32_t kv_head) const noexcept {
    const auto row = static_cast<std::size_t>(stream) * static_cast<std::size_t>(recipe.positions) +
                     static_cast<std::size_t>(position);
    return (row * static_cast<std::size_t>(recipe.kv_heads) + static_cast<std::size_t>(kv_head)) *
           head_dim();
  }
  /// A row's selected keys, in the order of its list.
  std::vector<std::int32_t> keys(std::size_t row) const;
};

Problem make_problem(const Recipe& recipe);

/// The same problem with some of its rows, in the order given.
Problem with_rows(const Problem& problem, const std::vector<std::size_t>& rows);

}  // namespace broach::contract::sparse_rows
