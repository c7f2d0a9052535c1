#pragma once

// The names that a rendered source gives its constants values of.

namespace broach::window_rows {

enum class Layout : int { kLinear = 0, kRing = 1, kPaged = 2 };

/// Faults that the contract plants to see its gates turn red; kNone in every served kernel.
enum class Control : int {
  kNone,
  kWindowEarly,      ///< The window starts one key early.
  kFoldReversed,     ///< Tiles are folded from the last to the first.
  kFoldUnscaled,     ///< A tile joins without its exponential of the running maximum.
  kWeightRounded,    ///< P is rounded to 16 bits before anything is made of it.
  kLowHalfDropped,   ///< P enters P x V as its high half alone.
  kHiIgnored,        ///< Prefill rows stop at their own position.
  kSinkLeftOut,      ///< The sink does not join the denominator.
  kPageOffByOne,     ///< The next page table entry is read.
  kWholeBlockRerun,  ///< One non-finite output re-runs every head of its block.
};

}  // namespace broach::window_rows
