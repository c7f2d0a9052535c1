#pragma once

// The names that a rendered sparse_rows source gives its constants values of.

#include "attention/cache_rows.cuh"

namespace broach::sparse_rows {

/// The type of q and of the output.
enum class QueryType : int {
  kCache,  ///< 16 bits, the cache's.
  kF32,
};

/// Faults that the contract plants to see its gates turn red; kNone in every served kernel.
enum class Control : int {
  kNone,
  kUnmaskedBlock,   ///< The block behind the row's last selected one is seen too.
  kCausalOffByOne,  ///< The row's own key is not seen.
  kRatioOffByOne,   ///< Blocks begin where they would with one key more in each.
  kUnionUnmasked,   ///< A tile's rows see what any of them selected.
  kPartDropped,     ///< P's last 16-bit part is left out.
  kRerunDropped,    ///< A non-finite output is not computed again in float64.
  kMergeUnscaled,   ///< Parts, or tiles, join without their exponential of the maximum.
};

constexpr int kMaxRatio = 16;
constexpr int kMaxParts = 64;

constexpr int min_of(int a, int b) { return a < b ? a : b; }
constexpr int max_of(int a, int b) { return a > b ? a : b; }
constexpr int at_least_pow2(int n) { return n <= 1 ? 1 : 2 * at_least_pow2((n + 1) / 2); }

}  // namespace broach::sparse_rows
