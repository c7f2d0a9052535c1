#pragma once

// The stream of a block's keys through shared memory: for each tile, its K in pieces of kTileKeys
// keys x kPieceDims dims, then its V, in a ring of kStages stages. Keys outside a range are zeros
// and are never read.

#include "common/platform.cuh"
#include "tiles/copy.cuh"
#include "tiles/panels.cuh"
#include "window_rows/keys.cuh"

namespace broach::window_rows {

constexpr int kPieces = kHeadDim / kPieceDims;

// Rows of a piece are padded (layout.h), or lie in panels where warpgroups multiply.
constexpr int kPieceStride = kPieceDims + kRowPad;
constexpr int kPieceElems = kTileKeys * (kPanels ? kPieceDims : kPieceStride);

/// Where element (key, column) of a piece lies, in elements from its start.
BROACH_DEVICE constexpr int piece_at(int key, int column) {
  if constexpr (kPanels) {
    return column / kPanelColumns * kTileKeys * kPanelColumns +
           panel_at(key, column % kPanelColumns);
  } else {
    return key * kPieceStride + column;
  }
}

/// In which order a block's tiles come. Down is a planted fault.
enum class TileOrder { kUp, kDown };

/// Where the pieces of one block lie in the cache; kThreads consecutive threads copy one.
///
/// Owns:    nothing; parameters outlive it.
template <int kThreads, TileOrder kOrder>
struct PieceSource {
  const unsigned short* k;  // of the KV head
  const unsigned short* v;
  KeyRows rows;
  KeyRange present;
  int first_tile;  // to come
  int count;       // pieces of this block

  BROACH_DEVICE PieceSource(const BroachWindowRowsDecode& p, int kv_head, int slot,
                            const KeyRange& present_keys, int first, int last)
      : k(elements(p.cache.k) + kv_head * p.cache.k_head_stride),
        v(elements(p.cache.v) + kv_head * p.cache.v_head_stride),
        rows(p, slot),
        present(present_keys),
        first_tile(kOrder == TileOrder::kUp ? first : last),
        count((last - first + 1) * 2 * kPieces) {}

  /// The tile that comes i-th.
  BROACH_DEVICE int tile(int i) const {
    return kOrder == TileOrder::kUp ? first_tile + i : first_tile - i;
  }

  /// Asks for piece `n`, which goes to `stage`.
  BROACH_DEVICE void copy(Thread thread, int n, unsigned short* stage) const {
    const int part = n % (2 * kPieces);
    const bool is_k = part < kPieces;
    const unsigned short* const base = (is_k ? k : v) + part % kPieces * kPieceDims;
    const RowStrides strides = is_k ? rows.of_k : rows.of_v;
    const int first_key = tile(n / (2 * kPieces)) * kTileKeys;
    const int index = static_cast<int>(thread.index()) % kThreads;
    constexpr int kVectors = kTileKeys * kPieceDims / 8;
    if constexpr (kPanels) {
      // Most tiles are all there, a row behind another; the others come one by one, since registers
      // are short.
      if (present.first <= first_key && first_key + kTileKeys - 1 <= present.last &&
          rows.follow_each_other(first_key, kTileKeys)) {
        copy_panels(index, base + rows.offset(first_key, strides), strides.position, stage);
      } else {
        BROACH_ROLLED
        for (int vector = index; vector < kVectors; vector += kThreads) {
          copy_vector(vector, first_key, base, strides, stage);
        }
      }
    } else {
      BROACH_UNROLL
      for (int i = 0; i < (kVectors + kThreads - 1) / kThreads; ++i) {
        const int vector = i * kThreads + index;
        if (kVectors % kThreads != 0 && vector >= kVectors) break;
        copy_vector(vector, first_key, base, strides, stage);
      }
    }
  }

  /// Copies 8 values of a key, or zeros if it is not present.
  BROACH_DEVICE void copy_vector(int vector, int first_key, const unsigned short* base,
                                 const RowStrides& strides, unsigned short* stage) const {
    constexpr int kVectors = kPieceDims / 8;
    const int key = first_key + vector / kVectors;
    const int column = vector % kVectors * 8;
    const bool is_present = present.holds(key);
    const int at = is_present ? key : present.last;
    copy_16_bytes(stage + piece_at(vector / kVectors, column),
                  base + rows.offset(at, strides) + column, is_present);
  }

  /// Copies a tile's keys, `stride` elements apart from `first` on: two instructions a vector.
  BROACH_DEVICE void copy_panels(int index, const unsigned short* first, long long stride,
                                 unsigned short* stage) const {
    // Whole rows a pass where threads divide so, or else a panel's.
    constexpr int kRowUnits = kPieceDims / 8;
    constexpr bool kWhole = kThreads % kRowUnits == 0 && kThreads / kRowUnits % 8 == 0;
    constexpr int kUnits = kWhole ? kRowUnits : kPanelColumns / 8;
    constexpr int kRows = kThreads / kUnits;
    static_assert(kThreads % kUnits == 0 && kRows % 8 == 0 && kTileKeys % kRows == 0,
                  "the panels' exchange repeats");
    const int row = index / kUnits;
    const int column = index % kUnits * 8;
    first += row * stride + column;
    stage += piece_at(row, column);
    BROACH_ROLLED
    for (int part = 0; part < kPieceDims; part += kUnits * 8) {
      const unsigned short* from = first + part;
      BROACH_UNROLL
      for (int i = 0; i < kTileKeys / kRows; ++i) {
        copy_16_bytes(stage + part * kTileKeys + i * kRows * kPanelColumns, from, true);
        from += kRows * stride;
      }
    }
  }
};

/// Feeds a block whose threads meet at every piece.
///
/// Owns:    nothing; parameters and ring outlive it.
template <int kThreads, TileOrder kOrder = TileOrder::kUp>
struct PieceFeed {
  PieceSource<kThreads, kOrder> source;
  unsigned short* ring;  // [kStages][kPieceElems]
  int next = 0;          // to be asked for
  int ready = 0;         // to be used

  BROACH_DEVICE PieceFeed(const BroachWindowRowsDecode& p, int kv_head, int slot,
                          const KeyRange& present_keys, int first, int last, unsigned short* stages)
      : source(p, kv_head, slot, present_keys, first, last), ring(stages) {}

  /// Asks for the first pieces; with them go copies that the caller made before.
  BROACH_DEVICE void start(Thread thread) {
    BROACH_ROLLED
    for (int i = 0; i < kStages - 1; ++i) ask(thread);
  }

  /// Asks for the next piece, or for nothing once all have been asked for.
  BROACH_DEVICE void ask(Thread thread) {
    if (next < source.count) {
      source.copy(thread, next, ring + next % kStages * kPieceElems);
      ++next;
    }
    copy_commit();
  }

  /// The next piece in order, once it has arrived; frees the stage of the one before.
  BROACH_DEVICE unsigned short* take(Thread thread) {
    copy_wait<kStages - 2>();
    sync_block(thread);
    ask(thread);
    return ring + ready++ % kStages * kPieceElems;
  }
};

}  // namespace broach::window_rows
