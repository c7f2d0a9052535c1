#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/contract/window_rows/bounds.hpp"
#include "tools/contract/window_rows/problem.hpp"

namespace broach::contract::window_rows {

/// The keys and values one row sees through one KV head, and the queries that look at them.
///
/// Shapes:  keys, values [keys][D]; queries [G][D]; the callers' 16-bit values as float64.
struct RowView {
  std::int32_t head_dim = 0;
  std::int32_t heads = 0;  ///< G query heads.
  std::int32_t keys = 0;
  std::int32_t first_position = 0;  ///< Of key 0.
  double scale = 1;
  double softcap = 0;            ///< 0: none.
  std::span<const float> sinks;  ///< G logits, or empty.
  std::vector<double> queries;
  std::vector<float> keys_f32;  ///< 16-bit values are exact in fp32.
  std::vector<float> values_f32;
};

/// float64's outputs of one (row, KV head) and how far the form's steps may lead from them.
///
/// Shapes:  exact, lowest, highest [G][D].
struct RowRange {
  std::vector<double> exact;
  std::vector<double> lowest;
  std::vector<double> highest;
};

/// Gathers what a row sees.
RowView view_of(const Problem& problem, std::int32_t row, std::int32_t kv_head);

/// Computes outputs in float64 and the range around each. A non-finite exact value has both ends
/// equal to it.
void range_of(const RowView& view, const FormBounds& bounds, RowRange& range);

}  // namespace broach::contract::window_rows
