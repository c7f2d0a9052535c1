#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/contract/harness/sweep.hpp"
#include "tools/contract/window_rows/inputs.hpp"

namespace broach::contract::window_rows {

/// An arithmetic in a form that the family has.
struct ArithForm {
  Arith arith;
  Form form;
};
inline constexpr ArithForm kArithForms[] = {
    {Arith::kChunk256, Form::kDecode},   {Arith::kTile64, Form::kDecode},
    {Arith::kTile64, Form::kPrefill},    {Arith::kTile64Ex2, Form::kDecode},
    {Arith::kTile64Ex2, Form::kPrefill}, {Arith::kMma32, Form::kPrefill},
};

/// Which other kernels have to give a case's bits: every layout, the generic kernel and the other
/// form; where another case of the same kind tries the layouts, the latter two; where one tries the
/// forms too, the generic kernel alone; or none, so that a planted fault shows by itself and not by
/// a sound kernel beside it.
enum class Twins : std::uint8_t { kAll, kGenericAndForm, kGeneric, kNone };

constexpr bool has_other_form(Twins twins) noexcept {
  return twins == Twins::kAll || twins == Twins::kGenericAndForm;
}

/// Where a prefill is cut in two: at every residue modulo 64 and into single rows, or at a few.
enum class Cuts : std::uint8_t { kFew, kEveryResidue };

/// A named problem that the family has to serve.
struct CaseSpec {
  std::string name;
  Recipe recipe;
  Twins twins = Twins::kAll;
  Cuts cuts = Cuts::kFew;
  Sweep sweep = Sweep::kWhole;  ///< The sweep from which on it is tried.
  /// Its twins in a quick sweep: one case of each arithmetic and form tries every layout there, and
  /// neither a `checked` build nor another case of tile64 tries any.
  Twins quick_twins = Twins::kGeneric;
  /// Rows of the largest batch that the case's rows are mixed to; a quick sweep goes to 64 where it
  /// tries every layout.
  std::int32_t largest_batch = 64;
};

/// Whole problems for a chip, or the same ones cut to what the host target computes in seconds.
enum class CaseSize : std::uint8_t { kFull, kCut };

/// The Gemma-4-like 12B sliding-window decode: 16 query heads over 8 KV heads of 256, window 1024
/// in a ring of 1536, three streams whose rings have wrapped.
CaseSpec gemma_decode(std::int32_t rows, CaseSize size, Arith arith = Arith::kChunk256);

/// Every decode that the family's contract names as served.
std::vector<CaseSpec> served_decodes(CaseSize size, Arith arith = Arith::kChunk256);

/// Small ragged decodes: every head_dim, every ratio of the contract, both types, every layout,
/// and key counts one below, at and one above each edge of the arithmetic.
std::vector<CaseSpec> ragged_decodes(Arith arith = Arith::kChunk256);

/// Every prefill that the family's contract names as served: chunks of 512 at positions 0, 1,300
/// (with an image) and 5,000 (the ring wraps) with p32, one of 333 with 16-bit weights, one without
/// a window, several sequences in one launch, and every ratio.
std::vector<CaseSpec> served_prefills(CaseSize size, Arith arith);

/// Small ragged prefills of several sequences: every head_dim, both types, every layout, soft cap
/// and sinks, and rows around each edge of bands, blocks and tiles; the wide ratios; and a chunk to
/// be cut everywhere.
std::vector<CaseSpec> ragged_prefills(Arith arith);

/// "bf16 D256 G2 W1024 ring(1536) p32 tile64", with what is switched on.
std::string name_of_shape(const WindowRowsShape& shape);

/// What sets a case's name apart from the same rows in other sizes and arithmetics.
std::string suffix_of(CaseSize size, Arith arith);

/// A decode of a shape that a user named, with inputs like real ones.
CaseSpec made_decode(const WindowRowsShape& shape, std::int32_t rows, std::int32_t kv_heads,
                     std::int32_t position);

}  // namespace broach::contract::window_rows
