#pragma once

#include <cstdint>

#include "broach/types.hpp"

namespace broach {

/// How a sparse_rows kernel multiplies. The two are different sums of the same terms.
enum class SparseTile : std::uint8_t {
  kScalar,  ///< fp32 fma chains; every chip has the same bits.
  kMma,     ///< tile64 over selected keys; compress_ratio 1, 2, 4, 8 or 16.
};

/// The type of q and of the output.
enum class QueryDtype : std::uint8_t {
  kCache,  ///< The cache's 16 bits.
  kF32,
};

/// What one sparse_rows kernel is specialised for: attention over selected blocks of keys.
///
/// Shapes:  head_dim as in window_rows; gqa_ratio 1..16 query heads a KV head; compress_ratio keys
///          a block, 1..65536.
/// Source:  docs/families/sparse_rows.md.
struct SparseRowsShape {
  std::uint32_t head_dim = 0;
  std::uint32_t gqa_ratio = 0;
  std::uint32_t compress_ratio = 0;
  SparseTile tile = SparseTile::kScalar;
  std::uint32_t part_count = 16;  ///< scalar: parts of a row's list of keys, 1..64.
  std::uint32_t p_parts = 3;      ///< mma: 16-bit parts that P enters P x V in, 1..3.
  KvLayout kv_layout;
  Dtype dtype = Dtype::kBf16;
  QueryDtype q_dtype = QueryDtype::kCache;
  Switch checked = Switch::kOff;  ///< Device-side checks of positions, slots, pages and block ids.

  friend bool operator==(const SparseRowsShape&, const SparseRowsShape&) = default;
};

}  // namespace broach
