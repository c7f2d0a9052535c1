#pragma once

// The names that a rendered tile64 source gives its constants values of.

namespace broach::tile64 {

enum class Layout : int { kLinear = 0, kRing = 1, kPaged = 2 };

/// Faults that the contract plants to see its gates turn red; kNone in every served kernel.
enum class Control : int {
  kNone,
  kWindowEarly,      ///< The window starts one key early.
  kFoldReversed,     ///< Tiles are folded from the last to the first.
  kFoldUnscaled,     ///< A tile joins without exp(m_t - M).
  kLowHalfDropped,   ///< P enters P x V as its high half alone.
  kHiIgnored,        ///< Prompt rows stop at their own position.
  kSinkLeftOut,      ///< The sink does not join the denominator.
  kPageOffByOne,     ///< The next page table entry is read.
  kWholeBlockRerun,  ///< One non-finite output re-runs every head of its block.
};

}  // namespace broach::tile64
