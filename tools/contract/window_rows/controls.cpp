#include "tools/contract/window_rows/controls.hpp"

#include <fmt/core.h>

#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "specializer/window_rows/shape.hpp"
#include "tools/contract/window_rows/family.hpp"

namespace broach::contract::window_rows {
namespace {

constexpr std::string_view kStartsEarly = "the window starts one key early";
constexpr std::string_view kUnseenKey =
    "the key before the window is a cell that no row sees, and holds NaN";
constexpr std::string_view kSinkLeftOut = "the sink does not join the denominator";
constexpr std::string_view kShortOfSink =
    "the denominator is short by the sink's weight, far beyond the range";
constexpr std::string_view kNextPage = "the next page table entry is read";
constexpr std::string_view kOtherKeys = "the page read holds other keys, or NaN";
constexpr std::string_view kOtherInFloat64 =
    "beside sums that cancel, nearly every output of a neighbour has other bits in float64";
constexpr std::string_view kSixteenBits =
    "16 bits of P miss the range of two halves wherever P is not short";
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

/// A fault of several arithmetics and forms.
struct Fault {
  std::string_view name;
  std::string_view words;
  Needs needs;
  Gate gate;
  std::string_view why;
  std::optional<Form> only = std::nullopt;  ///< The form that has it; none: both.
};

constexpr Fault kChunk256Faults[] = {
    {"window_early", kStartsEarly, Needs::kWindow, Gate::kShapes, kUnseenKey},
    {"unmasked_block", "keys behind the row's end, in its last chunk, are not masked",
     Needs::kStale, Gate::kShapes,
     "cells behind a row's end hold finite values, as a reused cache does, and join its sums; NaN "
     "would be repaired by the re-run in float64"},
    {"rescale_dropped", "chunks are combined without exp(m_c - M)", Needs::kWindow, Gate::kShapes,
     "a chunk's weights are off by the factor left out, far beyond the range"},
    {"output_toward_zero", kTowardZero, Needs::kWindow, Gate::kShapes, kValueBelow},
    {"rounding_dropped", "runs are added up without a rounding between them", Needs::kWindow,
     Gate::kSums, "values that cancel bring each rounding of the sums to the surface"},
    {"ratio_off_by_one", kOtherRatio, Needs::kWindow, Gate::kShapes, kOtherHead},
    {"rerun_dropped", kNotAgain, Needs::kWindow, Gate::kNonFinite, kInfiniteInFloat64},
    {"whole_block_rerun", "a non-finite output re-runs its neighbours in float64 too",
     Needs::kWindow, Gate::kNonFinite, kOtherInFloat64},
    {"sink_left_out", kSinkLeftOut, Needs::kSinks, Gate::kShapes, kShortOfSink},
    {"page_off_by_one", kNextPage, Needs::kPages, Gate::kShapes, kOtherKeys},
};

constexpr Fault kTileFaults[] = {
    {"window_early", kStartsEarly, Needs::kWindow, Gate::kShapes, kUnseenKey},
    {"hi_ignored", "rows stop at their own position", Needs::kHi, Gate::kShapes,
     "the rows of an image miss the keys behind them, far beyond the range", Form::kPrefill},
    {"rescale_dropped", "a tile joins without its exponential of the maximum", Needs::kWindow,
     Gate::kShapes, "a tile's weights are off by the factor left out, far beyond the range"},
    {"combine_reversed", "tiles are combined from the last to the first", Needs::kWindow,
     Gate::kSums,
     "values that cancel show in which order a row's tiles were summed, however blocks share them"},
    {"p_rounded", "P is rounded to 16 bits before anything is made of it", Needs::kP32,
     Gate::kShapes, kSixteenBits},
    {"low_half_dropped", "P enters P x V as its high half alone", Needs::kP32, Gate::kShapes,
     kSixteenBits},
    {"whole_block_rerun", "one non-finite output re-runs every head of its block in float64",
     Needs::kWindow, Gate::kNonFinite,
     "beside sums that cancel, nearly every output of a neighbour has other bits in float64; a "
     "combine kernel has one head a CTA and no neighbour, the two other schedules show it",
     Form::kDecode},
    {"whole_block_rerun", "one non-finite output re-runs every row of its block in float64",
     Needs::kWindow, Gate::kNonFinite, kOtherInFloat64, Form::kPrefill},
    {"sink_left_out", kSinkLeftOut, Needs::kSinks, Gate::kShapes, kShortOfSink},
    {"page_off_by_one", kNextPage, Needs::kPages, Gate::kShapes, kOtherKeys},
    {"ratio_off_by_one", kOtherRatio, Needs::kWindow, Gate::kShapes, kOtherHead},
    {"output_toward_zero", kTowardZero, Needs::kP32, Gate::kShapes, kValueBelow},
    {"rerun_dropped", kNotAgain, Needs::kWindow, Gate::kNonFinite, kInfiniteInFloat64},
};

/// The kernels that faults are planted in.
struct Planted {
  Arith arith;
  Form form;
  std::span<const Fault> faults;
};
constexpr Planted kPlanted[] = {
    {Arith::kChunk256, Form::kDecode, kChunk256Faults},
    {Arith::kTile64, Form::kDecode, kTileFaults},
    {Arith::kTile64, Form::kPrefill, kTileFaults},
    {Arith::kMma32, Form::kPrefill, kTileFaults},
    {Arith::kTile64Ex2, Form::kDecode, kTileFaults},
    {Arith::kTile64Ex2, Form::kPrefill, kTileFaults},
};

std::vector<PlantedFault> every_fault() {
  std::vector<PlantedFault> all;
  for (const Planted& kernel : kPlanted) {
    for (const Fault& fault : kernel.faults) {
      if (fault.only.value_or(kernel.form) != kernel.form) continue;
      all.push_back(
          {fault.name, fault.words, kernel.arith, kernel.form, fault.needs, fault.gate, fault.why});
    }
  }
  return all;
}

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

std::span<const PlantedFault> planted_faults() {
  static const std::vector<PlantedFault> kFaults = every_fault();
  return kFaults;
}

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
  // Chunks have 256 keys, tiles 64 or 32: several of each; more for a prefill where the order of
  // sums has to show in nearly every output.
  const bool is_short = fault.form == Form::kPrefill && fault.gate != Gate::kNonFinite;
  shape.window = is_short ? 300 : 1100;
  shape.kv_layout = {KvLayoutKind::kRing, is_short ? 400U : 1200U};
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
