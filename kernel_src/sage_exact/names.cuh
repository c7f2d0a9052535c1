#pragma once

// The names that a rendered source gives its constants values of.

namespace broach::sage_exact {

/// Faults that the contract plants to see its gates turn red; kNone in every served kernel.
enum class Control : int {
  kNone,
  kMeanLeftOut,     ///< k is quantised without its mean.
  kMeanUnrounded,   ///< The mean is subtracted before it is rounded to bf16.
  kPvOrderSwapped,  ///< The high half of a 32-key step enters P x V before the low half.
  kRescaleUnfused,  ///< Multiply and add where the rescale is one fma.
  kIeeeDivision,    ///< Division where the reference multiplies by an approximate reciprocal.
  kTailMoved,       ///< The last two tiles' placement of the scales begins one tile early.
  kTailUnmasked,    ///< Keys beyond the last token are not masked.
};

}  // namespace broach::sage_exact
