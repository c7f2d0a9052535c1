#pragma once

// Queries and outputs in either type that a shape may give them.

#include "common/half.cuh"
#include "common/load.cuh"
#include "common/ops.cuh"
#include "sparse_rows/selection.cuh"

namespace broach::sparse_rows {

template <QueryType kType>
struct QueryElement {
  using type = unsigned short;
};
template <>
struct QueryElement<QueryType::kF32> {
  using type = float;
};
using Element = QueryElement<kQueryType>::type;

BROACH_DEVICE float value_of(unsigned short bits) { return widen<kHalf>(bits); }
BROACH_DEVICE float value_of(float value) { return value; }

/// One rounding to the output's type.
template <class From>
BROACH_DEVICE void put(unsigned short* to, From value) {
  *to = narrow<kHalf>(value);
}
template <class From>
BROACH_DEVICE void put(float* to, From value) {
  *to = static_cast<float>(value);
}

BROACH_DEVICE bool is_finite_element(unsigned short bits) { return is_finite_half<kHalf>(bits); }
BROACH_DEVICE bool is_finite_element(float value) { return is_finite(value); }

BROACH_DEVICE const Element* query_at(const Params& p, int row, int head) {
  return static_cast<const Element*>(p.attention.q) + q_offset(p, row, head);
}
BROACH_DEVICE Element* out_at(const Params& p, int row, int head) {
  return static_cast<Element*>(p.attention.out) + out_offset(p, row, head);
}

/// Copies 8 elements of a query into shared memory.
BROACH_DEVICE void copy8(unsigned short* to, const unsigned short* from) {
  share8(to, load8(from));
}
BROACH_DEVICE void copy8(float* to, const float* from) {
  BROACH_UNROLL
  for (int i = 0; i < 8; ++i) to[i] = from[i];
}

/// Two elements of the cache, the first in the low half.
///
/// Shapes:  `at` 4-byte aligned.
BROACH_DEVICE unsigned load_pair(const unsigned short* at) {
#if defined(BROACH_CUDA)
  return __ldg(reinterpret_cast<const unsigned*>(at));
#else
  unsigned pair;
  __builtin_memcpy(&pair, at, sizeof(pair));
  return pair;
#endif
}

}  // namespace broach::sparse_rows
