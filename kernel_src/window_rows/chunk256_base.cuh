#pragma once

// The names that a rendered chunk256 source gives its constants values of.

#include "common/platform.cuh"

namespace broach::chunk256 {

enum class Layout : int { kLinear = 0, kRing = 1, kPaged = 2 };

/// Faults that the contract plants to see its gates turn red; kNone in every served kernel.
enum class Control : int {
  kNone,
  kWindowEarly,      ///< The window starts one key early.
  kUnmaskedBlock,    ///< Keys behind the row's end, in its last chunk, are not masked.
  kRatioOffByOne,    ///< Query heads find their KV head as if there were one more to each.
  kPageOffByOne,     ///< The next page table entry is read.
  kRoundingDropped,  ///< Runs are added up without a rounding between them.
  kMergeUnscaled,    ///< Chunks join without exp(m_c - M).
  kMergeTowardZero,  ///< The output is rounded toward zero.
  kSinkLeftOut,      ///< The sink does not join the denominator.
  kRerunDropped,     ///< A non-finite output is not computed again in float64.
  kWholeBlockRerun,  ///< A non-finite partial re-runs the rows and heads beside it too.
};

constexpr int kChunkKeys = 256;
constexpr int kRunKeys = 32;
constexpr int kRuns = kChunkKeys / kRunKeys;
constexpr int kPartThreads = kRuns * 32;
constexpr int kMergeThreads = 128;

// Constants at namespace scope are made of these: HIP refuses a __device__ function there, and
// takes a constexpr one without an attribute for both sides.
constexpr int min_of(int a, int b) { return a < b ? a : b; }
constexpr int max_of(int a, int b) { return a > b ? a : b; }
constexpr int at_least_pow2(int n) { return n <= 1 ? 1 : 2 * at_least_pow2((n + 1) / 2); }

}  // namespace broach::chunk256
