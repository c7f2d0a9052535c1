#pragma once

#include <cstdint>
#include <vector>

#include "broach/result.hpp"
#include "broach/window_rows.hpp"
#include "tools/contract/window_rows/problem.hpp"

namespace broach::contract::window_rows {

/// What cells that no row sees hold.
enum class Unseen : std::uint8_t {
  kNan,    ///< NaN: a kernel that lets one reach a row shows it.
  kStale,  ///< Finite values as large as seen ones, as a reused cache has.
};

/// How the keys of a slot follow each other in memory.
enum class CacheOrder : std::uint8_t { kPositionsFirst, kHeadsFirst };

/// One row: the position that it sits at, and the last that it sees (`kOwn`: its own).
struct RowAt {
  static constexpr std::int32_t kOwn = -1;
  std::int32_t stream = 0;
  std::int32_t position = 0;
  std::int32_t last = kOwn;

  std::int32_t last_key() const noexcept { return last == kOwn ? position : last; }
};

/// How a problem is made. The content at (stream, position, head, dim) depends on `seed` and
/// `rows` alone, never on the layout, the slots or the strides, so two recipes that differ in those
/// only hold the same numbers; `Problem::take` gives other batches of the same rows.
///
/// Query rows have RMS 0.95 to 1.05, keys 0.06 to 0.13, values 1, and every third row sees one key
/// equal to one of its query heads at the key's RMS, so that softmax is peaked as well as flat.
struct Recipe {
  WindowRowsShape shape;
  std::int32_t kv_heads = 1;
  std::vector<RowAt> rows;
  std::vector<std::int32_t> sequence_rows;   ///< Prefill: rows of each sequence, one after another.
  bool passes_hi = false;                    ///< Prefill: gives the launch every row's last key.
  std::vector<std::int32_t> slot_of_stream;  ///< Distinct; empty: stream i in slot i.
  std::int32_t slot_count = 0;               ///< 0: one more than the greatest slot used.
  std::int32_t length = 0;                   ///< Positions a slot; 0: the least that works.
  float scale = 1.0F;
  float softcap = 0.0F;
  Unseen unseen = Unseen::kNan;
  CacheOrder order = CacheOrder::kPositionsFirst;
  std::int32_t padding = 0;  ///< Elements between heads, a multiple of 8.
  std::uint64_t seed = 1;
};

/// Makes the numbers.
///
/// Errors:  kInvalidArgument when two rows of a stream cannot both have their keys in its ring, the
///          length is too short for a position, or a prefill's sequences do not make up its rows.
Result<Problem> make_problem(const Recipe& recipe);

}  // namespace broach::contract::window_rows
