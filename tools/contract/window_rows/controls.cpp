#include "tools/contract/window_rows/controls.hpp"

#include <fmt/core.h>

#include <string>
#include <tuple>
#include <utility>

#include "specializer/window_rows/shape.hpp"
#include "tools/contract/window_rows/family.hpp"

namespace broach::contract::window_rows {
namespace {

constexpr Arith kChunk256 = Arith::kChunk256;
constexpr Arith kTile64 = Arith::kTile64;
constexpr Arith kTile64Ex2 = Arith::kTile64Ex2;

constexpr Arith kMma32 = Arith::kMma32;
constexpr Form kDecode = Form::kDecode;
constexpr Form kPrefill = Form::kPrefill;

constexpr std::string_view kStartsEarly = "the window starts one key early";
constexpr std::string_view kUnseenKey =
    "the key before the window is a cell that no row sees, and holds NaN";
constexpr std::string_view kSinkLeftOut = "the sink does not join the denominator";
constexpr std::string_view kShortOfSink =
    "the denominator is short by the sink's weight, far beyond the range";
constexpr std::string_view kNextPage = "the next page table entry is read";
constexpr std::string_view kOtherKeys = "the page read holds other keys, or NaN";
constexpr std::string_view kUnscaled = "a tile joins without its exponential of the maximum";
constexpr std::string_view kFactorLeftOut =
    "a tile's weights are off by the factor left out, far beyond the range";

constexpr std::string_view kReversed = "tiles are combined from the last to the first";
constexpr std::string_view kOrderShows =
    "values that cancel show in which order a row's tiles were summed, however blocks share them";
constexpr std::string_view kRounded = "P is rounded to 16 bits before anything is made of it";
constexpr std::string_view kHighAlone = "P enters P x V as its high half alone";
constexpr std::string_view kSixteenBits =
    "16 bits of P miss the range of two halves wherever P is not short";
constexpr std::string_view kOwnPosition = "rows stop at their own position";
constexpr std::string_view kMissesImage =
    "the rows of an image miss the keys behind them, far beyond the range";
constexpr std::string_view kEveryRow =
    "one non-finite output re-runs every row of its block in float64";
constexpr std::string_view kOtherInFloat64 =
    "beside sums that cancel, nearly every output of a neighbour has other bits in float64";

constexpr std::string_view kOtherRatio =
    "query heads find their KV head as if there were one more to each";
constexpr std::string_view kOtherHead =
    "those heads' outputs are another KV head's, far beyond the range";
constexpr std::string_view kNotAgain = "a non-finite output is not computed again in float64";
constexpr std::string_view kInfiniteInFloat64 =
    "an infinite value at a weight that fp32 has as 0 is NaN there, and infinite in float64";
constexpr std::string_view kTowardZero = "the output is rounded toward zero";
constexpr std::string_view kValueBelow =
    "where the range holds one value, half of the outputs are the value below it";

constexpr PlantedFault kFaults[] = {
    {"window_early", kStartsEarly, kChunk256, kDecode, Needs::kWindow, Gate::kShapes, kUnseenKey},
    {"unmasked_block", "keys behind the row's end, in its last chunk, are not masked", kChunk256,
     kDecode, Needs::kStale, Gate::kShapes,
     "cells behind a row's end hold finite values, as a reused cache does, and join its sums; NaN "
     "would be repaired by the re-run in float64"},
    {"rescale_dropped", "chunks are combined without exp(m_c - M)", kChunk256, kDecode,
     Needs::kWindow, Gate::kShapes,
     "a chunk's weights are off by the factor left out, far beyond the range"},
    {"output_toward_zero", kTowardZero, kChunk256, kDecode, Needs::kWindow, Gate::kShapes,
     kValueBelow},
    {"rounding_dropped", "runs are added up without a rounding between them", kChunk256, kDecode,
     Needs::kWindow, Gate::kSums,
     "values that cancel bring each rounding of the sums to the surface"},
    {"ratio_off_by_one", kOtherRatio, kChunk256, kDecode, Needs::kWindow, Gate::kShapes,
     kOtherHead},
    {"rerun_dropped", kNotAgain, kChunk256, kDecode, Needs::kWindow, Gate::kNonFinite,
     kInfiniteInFloat64},
    {"whole_block_rerun", "a non-finite output re-runs its neighbours in float64 too", kChunk256,
     kDecode, Needs::kWindow, Gate::kNonFinite, kOtherInFloat64},
    {"sink_left_out", kSinkLeftOut, kChunk256, kDecode, Needs::kSinks, Gate::kShapes, kShortOfSink},
    {"page_off_by_one", kNextPage, kChunk256, kDecode, Needs::kPages, Gate::kShapes, kOtherKeys},

    {"window_early", kStartsEarly, kTile64, kDecode, Needs::kWindow, Gate::kShapes, kUnseenKey},
    {"rescale_dropped", kUnscaled, kTile64, kDecode, Needs::kWindow, Gate::kShapes, kFactorLeftOut},
    {"combine_reversed", kReversed, kTile64, kDecode, Needs::kWindow, Gate::kSums, kOrderShows},
    {"p_rounded", kRounded, kTile64, kDecode, Needs::kP32, Gate::kShapes, kSixteenBits},
    {"low_half_dropped", kHighAlone, kTile64, kDecode, Needs::kP32, Gate::kShapes, kSixteenBits},
    {"whole_block_rerun", "one non-finite output re-runs every head of its block in float64",
     kTile64, kDecode, Needs::kWindow, Gate::kNonFinite,
     "beside sums that cancel, nearly every output of a neighbour has other bits in float64; a "
     "combine kernel has one head a CTA and no neighbour, the two other schedules show it"},
    {"sink_left_out", kSinkLeftOut, kTile64, kDecode, Needs::kSinks, Gate::kShapes, kShortOfSink},
    {"page_off_by_one", kNextPage, kTile64, kDecode, Needs::kPages, Gate::kShapes, kOtherKeys},
    {"ratio_off_by_one", kOtherRatio, kTile64, kDecode, Needs::kWindow, Gate::kShapes, kOtherHead},
    {"output_toward_zero", kTowardZero, kTile64, kDecode, Needs::kP32, Gate::kShapes, kValueBelow},
    {"rerun_dropped", kNotAgain, kTile64, kDecode, Needs::kWindow, Gate::kNonFinite,
     kInfiniteInFloat64},

    {"window_early", kStartsEarly, kTile64, kPrefill, Needs::kWindow, Gate::kShapes, kUnseenKey},
    {"hi_ignored", kOwnPosition, kTile64, kPrefill, Needs::kHi, Gate::kShapes, kMissesImage},
    {"rescale_dropped", kUnscaled, kTile64, kPrefill, Needs::kWindow, Gate::kShapes,
     kFactorLeftOut},
    {"combine_reversed", kReversed, kTile64, kPrefill, Needs::kWindow, Gate::kSums, kOrderShows},
    {"p_rounded", kRounded, kTile64, kPrefill, Needs::kP32, Gate::kShapes, kSixteenBits},
    {"low_half_dropped", kHighAlone, kTile64, kPrefill, Needs::kP32, Gate::kShapes, kSixteenBits},
    {"whole_block_rerun", kEveryRow, kTile64, kPrefill, Needs::kWindow, Gate::kNonFinite,
     kOtherInFloat64},
    {"sink_left_out", kSinkLeftOut, kTile64, kPrefill, Needs::kSinks, Gate::kShapes, kShortOfSink},
    {"page_off_by_one", kNextPage, kTile64, kPrefill, Needs::kPages, Gate::kShapes, kOtherKeys},
    {"ratio_off_by_one", kOtherRatio, kTile64, kPrefill, Needs::kWindow, Gate::kShapes, kOtherHead},
    {"output_toward_zero", kTowardZero, kTile64, kPrefill, Needs::kP32, Gate::kShapes, kValueBelow},
    {"rerun_dropped", kNotAgain, kTile64, kPrefill, Needs::kWindow, Gate::kNonFinite,
     kInfiniteInFloat64},

    {"window_early", kStartsEarly, kMma32, kPrefill, Needs::kWindow, Gate::kShapes, kUnseenKey},
    {"hi_ignored", kOwnPosition, kMma32, kPrefill, Needs::kHi, Gate::kShapes, kMissesImage},
    {"rescale_dropped", kUnscaled, kMma32, kPrefill, Needs::kWindow, Gate::kShapes, kFactorLeftOut},
    {"combine_reversed", kReversed, kMma32, kPrefill, Needs::kWindow, Gate::kSums, kOrderShows},
    {"p_rounded", kRounded, kMma32, kPrefill, Needs::kP32, Gate::kShapes, kSixteenBits},
    {"low_half_dropped", kHighAlone, kMma32, kPrefill, Needs::kP32, Gate::kShapes, kSixteenBits},
    {"whole_block_rerun", kEveryRow, kMma32, kPrefill, Needs::kWindow, Gate::kNonFinite,
     kOtherInFloat64},
    {"sink_left_out", kSinkLeftOut, kMma32, kPrefill, Needs::kSinks, Gate::kShapes, kShortOfSink},
    {"page_off_by_one", kNextPage, kMma32, kPrefill, Needs::kPages, Gate::kShapes, kOtherKeys},
    {"ratio_off_by_one", kOtherRatio, kMma32, kPrefill, Needs::kWindow, Gate::kShapes, kOtherHead},
    {"output_toward_zero", kTowardZero, kMma32, kPrefill, Needs::kP32, Gate::kShapes, kValueBelow},
    {"rerun_dropped", kNotAgain, kMma32, kPrefill, Needs::kWindow, Gate::kNonFinite,
     kInfiniteInFloat64},
    {"window_early", kStartsEarly, kTile64Ex2, kDecode, Needs::kWindow, Gate::kShapes, kUnseenKey},
    {"rescale_dropped", kUnscaled, kTile64Ex2, kDecode, Needs::kWindow, Gate::kShapes,
     kFactorLeftOut},
    {"combine_reversed", kReversed, kTile64Ex2, kDecode, Needs::kWindow, Gate::kSums, kOrderShows},
    {"p_rounded", kRounded, kTile64Ex2, kDecode, Needs::kP32, Gate::kShapes, kSixteenBits},
    {"low_half_dropped", kHighAlone, kTile64Ex2, kDecode, Needs::kP32, Gate::kShapes, kSixteenBits},
    {"whole_block_rerun", "one non-finite output re-runs every head of its block in float64",
     kTile64Ex2, kDecode, Needs::kWindow, Gate::kNonFinite,
     "beside sums that cancel, nearly every output of a neighbour has other bits in float64; a "
     "fold by a second kernel has one head a block and no neighbour, the two other folds show it"},
    {"sink_left_out", kSinkLeftOut, kTile64Ex2, kDecode, Needs::kSinks, Gate::kShapes,
     kShortOfSink},
    {"page_off_by_one", kNextPage, kTile64Ex2, kDecode, Needs::kPages, Gate::kShapes, kOtherKeys},
    {"ratio_off_by_one", kOtherRatio, kTile64Ex2, kDecode, Needs::kWindow, Gate::kShapes,
     kOtherHead},
    {"output_toward_zero", kTowardZero, kTile64Ex2, kDecode, Needs::kP32, Gate::kShapes,
     kValueBelow},
    {"rerun_dropped", kNotAgain, kTile64Ex2, kDecode, Needs::kWindow, Gate::kNonFinite,
     kInfiniteInFloat64},
    {"window_early", kStartsEarly, kTile64Ex2, kPrefill, Needs::kWindow, Gate::kShapes, kUnseenKey},
    {"hi_ignored", kOwnPosition, kTile64Ex2, kPrefill, Needs::kHi, Gate::kShapes, kMissesImage},
    {"rescale_dropped", kUnscaled, kTile64Ex2, kPrefill, Needs::kWindow, Gate::kShapes,
     kFactorLeftOut},
    {"combine_reversed", kReversed, kTile64Ex2, kPrefill, Needs::kWindow, Gate::kSums, kOrderShows},
    {"p_rounded", kRounded, kTile64Ex2, kPrefill, Needs::kP32, Gate::kShapes, kSixteenBits},
    {"low_half_dropped", kHighAlone, kTile64Ex2, kPrefill, Needs::kP32, Gate::kShapes,
     kSixteenBits},
    {"whole_block_rerun", kEveryRow, kTile64Ex2, kPrefill, Needs::kWindow, Gate::kNonFinite,
     kOtherInFloat64},
    {"sink_left_out", kSinkLeftOut, kTile64Ex2, kPrefill, Needs::kSinks, Gate::kShapes,
     kShortOfSink},
    {"page_off_by_one", kNextPage, kTile64Ex2, kPrefill, Needs::kPages, Gate::kShapes, kOtherKeys},
    {"ratio_off_by_one", kOtherRatio, kTile64Ex2, kPrefill, Needs::kWindow, Gate::kShapes,
     kOtherHead},
    {"output_toward_zero", kTowardZero, kTile64Ex2, kPrefill, Needs::kP32, Gate::kShapes,
     kValueBelow},
    {"rerun_dropped", kNotAgain, kTile64Ex2, kPrefill, Needs::kWindow, Gate::kNonFinite,
     kInfiniteInFloat64},
};

// Neighbours in the batch are of other streams, so that they do not see each other's keys.
void add_decode_rows(Recipe& recipe) {
  recipe.kv_heads = 3;
  recipe.rows = {{0, 5'000}, {1, 1'300}, {0, 4'950}, {2, 700}, {2, 651}};
}

// Two sequences whose windows and rings have moved on; with `hi`, an image over a block's edge.
void add_prefill_rows(Recipe& recipe, bool image) {
  recipe.kv_heads = 2;
  for (const auto& [stream, p0, rows] : {std::tuple{0, 3'000, 70}, std::tuple{1, 1'250, 18}}) {
    for (std::int32_t i = 0; i < rows; ++i) {
      const bool inside = image && i >= rows - 12 && i < rows - 2;
      recipe.rows.push_back({stream, p0 + i, inside ? p0 + rows - 3 : RowAt::kOwn});
    }
    recipe.sequence_rows.push_back(rows);
  }
  recipe.passes_hi = image;
}

// "tile64 prefill"
std::string kind_of(const PlantedFault& fault) {
  return fmt::format("{} {}", specializer::name_of(fault.arith), specializer::name_of(fault.form));
}

}  // namespace

std::span<const PlantedFault> planted_faults() { return kFaults; }

Control control_of(const PlantedFault& fault) {
  return {fault.name,  kind_of(fault),
          fault.words, fault.gate,
          fault.why,   case_of(control_case(fault), {std::string(fault.name), Switch::kOff})};
}

CaseSpec control_case(const PlantedFault& fault) {
  CaseSpec made;
  made.name = fmt::format("control {} ({})", fault.name, kind_of(fault));
  made.twins = Twins::kNone;
  WindowRowsShape& shape = made.recipe.shape;
  shape.form = fault.form;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  shape.window = 1100;
  shape.kv_layout = {KvLayoutKind::kRing, 1200};
  shape.arith = fault.arith;
  if (fault.needs == Needs::kSinks) {
    // A sink beside a hundred keys weighs enough to leave the range that 16 bits of P need.
    shape.sinks = Switch::kOn;
    shape.window = 100;
  }
  if (fault.needs == Needs::kPages) shape.kv_layout = {KvLayoutKind::kPaged, 64};
  if (fault.needs == Needs::kP32) shape.p32 = Switch::kOn;
  if (fault.form == Form::kDecode) {
    add_decode_rows(made.recipe);
  } else {
    add_prefill_rows(made.recipe, fault.needs == Needs::kHi);
  }
  if (fault.gate == Gate::kNonFinite && fault.form == Form::kDecode) {
    // Heads that share a block, in each way that a launch may be spread: tile64 folds 512 values at
    // a time, so that at head_dim 512 a folding block would have no neighbour.
    shape.gqa_ratio = 8;
  }
  if (fault.needs == Needs::kStale) made.recipe.unseen = Unseen::kStale;
  made.recipe.scale = 2.0F;
  made.recipe.seed = 77;
  return made;
}

}  // namespace broach::contract::window_rows
