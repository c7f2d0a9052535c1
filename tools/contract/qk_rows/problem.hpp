#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broach/qk_rows.hpp"

namespace broach::contract::qk_rows {

struct RowAt {
  std::int32_t stream = 0;
  std::int32_t position = 0;
};

enum class Values : std::uint8_t {
  kDrawn,
  kUnit,  ///< Integers at position 0, weights and scales of 1: the sum of squares is known.
};

/// A problem by name: every machine makes the same inputs of it.
struct Recipe {
  QkRowsShape shape;
  std::int32_t kv_heads = 2;
  std::int32_t streams = 2;
  std::int32_t length = 0;  ///< Positions of a linear or paged slot.
  std::int32_t slot_shift = 0;
  float epsilon = 1e-6F;
  double theta = 10000;
  Values values = Values::kDrawn;
  std::vector<RowAt> rows;
  std::uint64_t seed = 1;
};

/// The tensors of a problem, without gaps.
///
/// Shapes:  q [rows][H][D]; k, v [rows][kv_heads][D]; inverse [rope_dim / 2]; norms [D]; scale
/// [H][D].
struct Problem {
  Recipe recipe;
  std::vector<std::uint16_t> q, k, v;
  std::vector<float> inverse, q_norm, k_norm, scale;

  std::size_t head_dim() const noexcept { return recipe.shape.head_dim; }
  std::size_t q_heads() const noexcept {
    return static_cast<std::size_t>(recipe.kv_heads) * recipe.shape.gqa_ratio;
  }
  std::size_t kv_heads() const noexcept { return static_cast<std::size_t>(recipe.kv_heads); }
  /// Query, K and V heads of a row, in this order: the outputs' order too.
  std::size_t heads() const noexcept { return q_heads() + 2 * kv_heads(); }
  /// One of them, [D].
  const std::uint16_t* head(std::size_t row, std::size_t index) const noexcept;
  std::uint16_t* head(std::size_t row, std::size_t index) noexcept;
};

Problem make_problem(const Recipe& recipe);

/// The same problem with some of its rows, in the order given.
Problem with_rows(const Problem& problem, const std::vector<std::size_t>& rows);

}  // namespace broach::contract::qk_rows
