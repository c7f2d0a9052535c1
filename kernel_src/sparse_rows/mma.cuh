#pragma once

// sparse_rows, tile=mma (docs/families/sparse_rows.md): tile64 over selected keys.
//
//   out[row, head, d] = sum_j p_j v_j[d] / sum_j p_j      p_j = exp(s_j - max)     s_j = scale
//   q.k_j
//
// Tiles of 64 keys at absolute positions. For a row and each tile that holds a key it selected:
//
//   s_j   a chain of k16 MMA steps over the dims from 0, then one rounding by scale; an fp32 query
//         enters scaled and as three 16-bit parts, each step high, middle, low
//   m_t = max s_j     p_j = exp(s_j - m_t)     l_t = sum of p_j, in tile64's order
//   pv_t  a chain of k16 MMA steps over the tile's keys from 0, P as 1 to 3 16-bit parts, each step
//         the highest first
//   M' = max(M, m_t)   a = exp(M - M')   b = exp(m_t - M')   l = l a + l_t b   o = o a + pv_t b
//   out = round(o / l)
//
// Block: kTileRows consecutive rows of a launch times the KV head's query heads are the columns of
// one tile over the union of the rows' keys; keys, then dims, are its M side. Each column has its
// own mask, and a tile without a key of a column leaves its M, l and o alone: a row's bits do not
// depend on the rows beside it. Rows of different slots take turns.
// A key that only a neighbour selected has p = 0, and 0 x infinity is NaN: where an output comes
// out non-finite, its row runs again alone, over its own keys; where it still is, in float64.
//
// Memory: pieces of 64 keys x kPieceDims dims of K, then of V, through a ring of kStages stages. K
// and V are read once a block, selected keys only. grid = (row groups, kv_heads, 1).
// The including source defines kMmaThreads, kTileRows, kPieceDims, kStages, kPParts and
// kMmaSharedBytes as well, which but for kPParts change no bit.
// Chips: see tiles/mma_tile.cuh. 16 keys that no row of the block selected are left out where a
// step of zeros keeps its accumulators' bits.

#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/ops.cuh"
#include "common/warp.cuh"
#include "sparse_rows/combine.cuh"
#include "sparse_rows/query.cuh"
#include "sparse_rows/rerun.cuh"
#include "sparse_rows/span.cuh"
#include "tiles/copy.cuh"
#include "tiles/mma_tile.cuh"

namespace broach::sparse_rows {

constexpr int kQueryParts = kQueryType == QueryType::kF32 ? 3 : 1;
constexpr int kColumnBlocks = column_blocks(kTileRows, kGeneric ? kMaxRatio : kRatio);
constexpr int kColumns = 16 * kColumnBlocks;
constexpr int kQueryStride = kHeadDim + kOperandPad;
constexpr int kColumnStride = column_elems(kPParts);
constexpr int kPieceStride = kPieceDims + kOperandPad;
constexpr int kPieceElems = kMmaTileKeys * kPieceStride;
constexpr int kPieces = kHeadDim / kPieceDims;
constexpr int kSteps = kMmaTileKeys / 16;

// Threads that hold a tile together are a unit. Scores: four units cover a tile's keys, groups of
// four share the column blocks. P x V: 16-dim parts of a piece go round the units; where a piece
// has fewer parts than there are units, groups of units share the column blocks.
constexpr int kUnits = kMmaThreads / kTileLanes;
constexpr int kScoreGroups = kUnits / kSteps;
constexpr int kScoreBlocks = (kColumnBlocks + kScoreGroups - 1) / kScoreGroups;
constexpr int kPieceParts = kPieceDims / 16;
constexpr int kPartUnits = min_of(kPieceParts, kUnits);
constexpr int kUnitParts = (kPieceParts + kPartUnits - 1) / kPartUnits;
constexpr int kValueGroups = kUnits / kPartUnits;
constexpr int kValueBlocks = (kColumnBlocks + kValueGroups - 1) / kValueGroups;
static_assert(kColumns * 4 <= kMmaThreads, "four threads a column");

struct MmaShared {
  alignas(16) unsigned short pieces[kStages * kPieceElems];
  alignas(16) unsigned short q[kQueryParts][kColumns * kQueryStride];
  alignas(16) unsigned short columns[kColumns * kColumnStride];  // scores, then P
  Rescale rescales[kColumns];
  float sums[kColumns];
  unsigned redo[kColumns];
  SpanShared span;
};
static_assert(sizeof(MmaShared) == kMmaSharedBytes, "the renderer states the same size");

/// The rows that a pass works on.
struct Pass {
  Span span;
  int slot;
  int ratio;
  int columns;  ///< Of all rows of the block.

  BROACH_DEVICE int row_of(int column) const { return column / ratio; }
  BROACH_DEVICE bool has_column(int column) const {
    return column < columns && span.is_active(row_of(column));
  }
};

/// Which of a tile's 64 keys are selected. Two words, which no run-time index reaches.
struct KeyMask {
  unsigned low;
  unsigned high;

  BROACH_DEVICE bool any_key() const { return (low | high) != 0; }
  BROACH_DEVICE bool holds(int key) const {
    return ((key < 32 ? low : high) >> (key % 32) & 1u) != 0;
  }
  /// Whether the 16 keys of a step take part in a tile.
  BROACH_DEVICE bool takes_step(int step) const {
    return !kZeroStepsKeepBits || ((step < 2 ? low : high) >> (step % 2 * 16) & 0xffffu) != 0;
  }
};

/// What any active row selected of the tile at `at` of the span.
BROACH_DEVICE KeyMask union_of(const SpanShared& span, int at) {
  KeyMask mask{0, 0};
  BROACH_UNROLL
  for (int r = 0; r < kTileRows; ++r) {
    mask.low |= span.masks[r][at][0];
    mask.high |= span.masks[r][at][1];
  }
  return mask;
}

/// A value as `kParts` 16-bit parts whose sum is the value (three: exactly, for bf16), by columns.
template <int kParts>
BROACH_DEVICE void split(float value, unsigned short (&parts)[kParts]) {
  BROACH_UNROLL
  for (int i = 0; i < kParts; ++i) {
    parts[i] = narrow<kHalf>(value);
    if (i + 1 < kParts) value = sub_rn(value, widen<kHalf>(parts[i]));
  }
  if (kControl == Control::kPartDropped && kParts > 1) parts[kParts - 1] = 0;
}

/// Brings the queries of the active rows; other columns are zeros.
BROACH_DEVICE void load_queries(Thread thread, const Params& p, const Pass& pass,
                                MmaShared& shared) {
  constexpr int kVectors = kHeadDim / 8;
  BROACH_ROLLED
  for (int vector = static_cast<int>(thread.index()); vector < kColumns * kVectors;
       vector += kMmaThreads) {
    const int column = vector / kVectors;
    const int dim = vector % kVectors * 8;
    const bool is_there = pass.has_column(column);
    const int of = is_there ? column : 0;
    const Element* const q = query_at(p, pass.span.first_row + pass.row_of(of),
                                      pass.span.kv_head * pass.ratio + of % pass.ratio) +
                             dim;
    const int at = column * kQueryStride + dim;
    if constexpr (kQueryParts == 1) {
      copy_16_bytes(shared.q[0] + at, q, is_there);
    } else {
      BROACH_UNROLL
      for (int e = 0; e < 8; ++e) {
        const float scaled = is_there ? mul_rn(value_of(q[e]), p.attention.scale) : 0.0f;
        unsigned short parts[kQueryParts];
        split(scaled, parts);
        BROACH_UNROLL
        for (int i = 0; i < kQueryParts; ++i) shared.q[i][at + e] = parts[i];
      }
    }
  }
}

/// The stream of a span's keys through shared memory: for each tile K in pieces, then V.
struct Feed {
  const Params& p;
  KvHead cache;
  const Pass& pass;
  MmaShared& shared;
  int count;      // pieces of the span
  int next = 0;   // to be asked for
  int ready = 0;  // to be used

  BROACH_DEVICE Feed(const Params& params, const Pass& of, MmaShared& memory)
      : p(params),
        cache(params, of.slot, of.span.kv_head),
        pass(of),
        shared(memory),
        count(memory.span.count * 2 * kPieces) {}

  BROACH_DEVICE void start(Thread thread) {
    BROACH_ROLLED
    for (int i = 0; i < kStages - 1; ++i) ask(thread);
  }

  /// Asks for the next piece, or for nothing once all have been asked for.
  BROACH_DEVICE void ask(Thread thread) {
    if (next < count) {
      copy(thread, next, shared.pieces + next % kStages * kPieceElems);
      ++next;
    }
    copy_commit();
  }

  /// The next piece in order, once it has arrived; frees the stage of the one before.
  BROACH_DEVICE unsigned short* take(Thread thread) {
    copy_wait<kStages - 2>();
    sync_block(thread);
    ask(thread);
    return shared.pieces + ready++ % kStages * kPieceElems;
  }

 private:
  BROACH_DEVICE void copy(Thread thread, int n, unsigned short* stage) const {
    const int part = n % (2 * kPieces);
    const bool is_k = part < kPieces;
    const int at = shared.span.tiles[n / (2 * kPieces)];
    const KeyMask mask = union_of(shared.span, at);
    const int first = (pass.span.first_tile + at) * kMmaTileKeys;
    const unsigned short* const base = (is_k ? cache.k : cache.v) + part % kPieces * kPieceDims;
    constexpr int kVectors = kPieceDims / 8;
    BROACH_UNROLL
    for (int i = 0; i < (kMmaTileKeys * kVectors + kMmaThreads - 1) / kMmaThreads; ++i) {
      const int vector = i * kMmaThreads + static_cast<int>(thread.index());
      if (kMmaTileKeys * kVectors % kMmaThreads != 0 && vector >= kMmaTileKeys * kVectors) break;
      const int key = vector / kVectors;
      const int column = vector % kVectors * 8;
      if (!mask.takes_step(key / 16)) continue;
      const bool is_there = mask.holds(key);
      const unsigned short* from = base;
      if (is_there) {
        const CacheCell cell = cache.cell(first + key);
        from += (is_k ? k_offset(p, cell) : v_offset(p, cell)) + column;
      }
      copy_16_bytes(stage + key * kPieceStride + column, from, is_there);
    }
  }
};

/// Adds one K piece to the dot products of this unit's 16 keys.
BROACH_DEVICE void score_piece(Thread thread, const MmaShared& shared, const unsigned short* piece,
                               int dims, int columns, float (&dots)[kScoreBlocks][kTileElems]) {
  const int unit = static_cast<int>(thread.index()) / kTileLanes;
  const unsigned short* const keys = piece + unit % kSteps * 16 * kPieceStride;
  BROACH_UNROLL
  for (int step = 0; step < kPieceParts; ++step) {
    TileA a;
    tile_load_a(thread, a, keys + step * 16, kPieceStride);
    BROACH_UNROLL
    for (int i = 0; i < kScoreBlocks; ++i) {
      const int block = unit / kSteps * kScoreBlocks + i;
      if (block * 16 >= columns) continue;
      BROACH_UNROLL
      for (int part = 0; part < kQueryParts; ++part) {
        TileB b;
        tile_load_b(thread, b, shared.q[part] + block * 16 * kQueryStride + dims + step * 16,
                    kQueryStride);
        tile_mma<kHalf>(thread, dots[i], a, b);
      }
    }
  }
}

/// Leaves the dot products of this unit's keys in their columns' places.
BROACH_DEVICE void leave_scores(Thread thread, MmaShared& shared, int columns,
                                const float (&dots)[kScoreBlocks][kTileElems]) {
  const int unit = static_cast<int>(thread.index()) / kTileLanes;
  const int lane = tile_lane(thread);
  BROACH_UNROLL
  for (int i = 0; i < kScoreBlocks; ++i) {
    const int block = unit / kSteps * kScoreBlocks + i;
    if (block * 16 >= columns) continue;
    BROACH_UNROLL
    for (int e = 0; e < kTileElems; ++e) {
      const int column = block * 16 + tile_column(lane, e);
      auto* const scores = reinterpret_cast<float*>(shared.columns + column * kColumnStride);
      scores[unit % kSteps * 16 + tile_row(lane, e)] = dots[i][e];
    }
  }
}

/// What four threads know of a column between tiles.
struct Column {
  float maximum;
  float sum;
};

/// Turns a tile's scores into P, for column `index / 4`: class c of its keys (tile64's order of the
/// sum) is thread c's. Every thread takes part.
BROACH_DEVICE void soften_tile(Thread thread, const Params& p, const Pass& pass, int at,
                               MmaShared& shared, Column& state) {
  const int index = static_cast<int>(thread.index());
  const int column = index / 4;
  const int of_class = index % 4 * 2;
  const bool is_column = column < kColumns && pass.has_column(column);
  KeyMask mask{0, 0};
  if (is_column) {
    if constexpr (kControl == Control::kUnionUnmasked) {
      mask = union_of(shared.span, at);
    } else {
      const int row = pass.row_of(column);
      mask = {shared.span.masks[row][at][0], shared.span.masks[row][at][1]};
    }
  }
  const bool has_any = mask.any_key();
  unsigned short* const place = shared.columns + (column < kColumns ? column : 0) * kColumnStride;
  const auto* const scores = reinterpret_cast<const float*>(place);
  float s[kMmaTileKeys / 8][2];
  float most = -infinity();
  BROACH_UNROLL
  for (int n = 0; n < kMmaTileKeys / 8; ++n) {
    BROACH_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int key = 8 * n + of_class + i;
      s[n][i] = -infinity();
      if (!mask.holds(key)) continue;
      s[n][i] = kQueryParts == 1 ? mul_rn(scores[key], p.attention.scale) : scores[key];
      most = larger(most, s[n][i]);
    }
  }
  most = larger(most, shuffle_xor(thread, most, 1));
  most = larger(most, shuffle_xor(thread, most, 2));
  sync_warp(thread);  // P takes the scores' place.
  // A column without a key of the tile: P is +0 whatever it is relative to.
  const float base = has_any ? most : 0.0f;
  float sum = 0.0f;
  BROACH_UNROLL
  for (int n = 0; n < kMmaTileKeys / 8; ++n) {
    const float low = exp32(sub_rn(s[n][0], base));
    const float high = exp32(sub_rn(s[n][1], base));
    const float pair = add_rn(low, high);
    sum = n == 0 ? pair : add_rn(sum, pair);
    if (column >= kColumns) continue;
    unsigned short low_parts[kPParts];
    unsigned short high_parts[kPParts];
    split(low, low_parts);
    split(high, high_parts);
    BROACH_UNROLL
    for (int part = 0; part < kPParts; ++part) {
      const unsigned both = low_parts[part] | static_cast<unsigned>(high_parts[part]) << 16;
      *reinterpret_cast<unsigned*>(place + part * (kMmaTileKeys + kOperandPad) + 8 * n + of_class) =
          both;
    }
  }
  sum = add_rn(sum, shuffle_xor(thread, sum, 1));
  sum = add_rn(sum, shuffle_xor(thread, sum, 2));
  if (column >= kColumns) return;
  Rescale rescale{1.0f, 0.0f};
  if (has_any) {
    rescale = rescale_for(state.maximum, most);
    state.sum = rescale.join(state.sum, sum);
  }
  if (of_class == 0) {
    shared.rescales[column] = rescale;
    shared.redo[column] = has_any ? 1u : 0u;  // Until the end: whether the tile joins the column.
  }
}

/// Which parts of a piece and which column blocks a unit multiplies.
struct ValueShare {
  int unit;

  BROACH_DEVICE explicit ValueShare(Thread thread)
      : unit(static_cast<int>(thread.index()) / kTileLanes) {}

  BROACH_DEVICE int part(int u) const { return unit % kPartUnits + u * kPartUnits; }
  BROACH_DEVICE int block(int i) const { return unit / kPartUnits * kValueBlocks + i; }
  BROACH_DEVICE bool has(int u, int i) const {
    return part(u) < kPieceParts && block(i) < kColumnBlocks;
  }
};

using PieceOutputs = float[kUnitParts][kValueBlocks][kTileElems];

/// pv of this unit's share of one V piece.
BROACH_DEVICE void value_piece(Thread thread, const MmaShared& shared, const unsigned short* piece,
                               const KeyMask& mask, int columns, PieceOutputs& pv) {
  const ValueShare share(thread);
  BROACH_UNROLL
  for (int u = 0; u < kUnitParts; ++u) {
    BROACH_UNROLL
    for (int i = 0; i < kValueBlocks; ++i) {
      BROACH_UNROLL
      for (int e = 0; e < kTileElems; ++e) pv[u][i][e] = 0.0f;
    }
  }
  BROACH_UNROLL
  for (int step = 0; step < kSteps; ++step) {
    if (!mask.takes_step(step)) continue;
    BROACH_UNROLL
    for (int u = 0; u < kUnitParts; ++u) {
      if (share.part(u) >= kPieceParts) continue;
      TileA a;
      tile_load_a_transposed(thread, a, piece + step * 16 * kPieceStride + share.part(u) * 16,
                             kPieceStride);
      BROACH_UNROLL
      for (int i = 0; i < kValueBlocks; ++i) {
        if (!share.has(u, i) || share.block(i) * 16 >= columns) continue;
        BROACH_UNROLL
        for (int of_p = 0; of_p < kPParts; ++of_p) {
          TileB b;
          tile_load_b(thread, b,
                      shared.columns + share.block(i) * 16 * kColumnStride +
                          of_p * (kMmaTileKeys + kOperandPad) + step * 16,
                      kColumnStride);
          tile_mma<kHalf>(thread, pv[u][i], a, b);
        }
      }
    }
  }
}

struct Outputs {
  PieceOutputs o[kPieces];

  /// Joins one piece of a tile. The outputs are registers, which no run-time index reaches.
  BROACH_DEVICE void join(Thread thread, int piece, const MmaShared& shared,
                          const PieceOutputs& pv) {
    const ValueShare share(thread);
    const int lane = tile_lane(thread);
    BROACH_UNROLL
    for (int i = 0; i < kValueBlocks; ++i) {
      if (share.block(i) >= kColumnBlocks) continue;
      BROACH_UNROLL
      for (int e = 0; e < kTileElems; ++e) {
        const int column = share.block(i) * 16 + tile_column(lane, e);
        if (shared.redo[column] == 0) continue;
        const Rescale rescale = shared.rescales[column];
        BROACH_UNROLL
        for (int of = 0; of < kPieces; ++of) {
          if (of != piece) continue;
          BROACH_UNROLL
          for (int u = 0; u < kUnitParts; ++u) {
            o[of][u][i][e] = rescale.join(o[of][u][i][e], pv[u][i][e]);
          }
        }
      }
    }
  }

  /// Leaves a piece in shared memory, [column][dim of the piece].
  BROACH_DEVICE void stage(Thread thread, int piece, float* staged) const {
    const ValueShare share(thread);
    const int lane = tile_lane(thread);
    BROACH_UNROLL
    for (int of = 0; of < kPieces; ++of) {
      if (of != piece) continue;
      BROACH_UNROLL
      for (int u = 0; u < kUnitParts; ++u) {
        BROACH_UNROLL
        for (int i = 0; i < kValueBlocks; ++i) {
          if (!share.has(u, i)) continue;
          BROACH_UNROLL
          for (int e = 0; e < kTileElems; ++e) {
            staged[(share.block(i) * 16 + tile_column(lane, e)) * kPieceDims + share.part(u) * 16 +
                   tile_row(lane, e)] = o[of][u][i][e];
          }
        }
      }
    }
  }
};

/// Writes the pass's outputs; `shared.redo` says after the next barrier which columns are not
/// finite. Through shared memory, so that rows are written whole and the division is compiled once.
BROACH_DEVICE void finish(Thread thread, const Params& p, const Pass& pass, const Column& state,
                          const Outputs& outputs, MmaShared& shared) {
  const int index = static_cast<int>(thread.index());
  if (index % 4 == 0 && index / 4 < kColumns) shared.sums[index / 4] = state.sum;
  sync_block(thread);
  if (index < kColumns) shared.redo[index] = 0;
  auto* const staged = reinterpret_cast<float*>(shared.pieces);
  static_assert(kColumns * kPieceDims * 4 <= kStages * kPieceElems * 2, "fits in the ring");
  BROACH_ROLLED
  for (int piece = 0; piece < kPieces; ++piece) {
    sync_block(thread);
    outputs.stage(thread, piece, staged);
    sync_block(thread);
    BROACH_ROLLED
    for (int i = index; i < pass.columns * kPieceDims; i += kMmaThreads) {
      const int column = i / kPieceDims;
      if (!pass.has_column(column)) continue;
      const float sum = shared.sums[column];
      Element* const out = out_at(p, pass.span.first_row + pass.row_of(column),
                                  pass.span.kv_head * pass.ratio + column % pass.ratio) +
                           piece * kPieceDims + i % kPieceDims;
      // Only a row without any key has a sum of zero.
      put(out, sum == 0.0f ? 0.0f : div_rn(staged[i], sum));
      if (!is_finite_element(*out)) shared.redo[column] = 1;
    }
  }
  sync_block(thread);
}

/// Computes the outputs of the pass's rows.
BROACH_DEVICE void attend(Thread thread, const Params& p, Pass& pass, MmaShared& shared) {
  pass.span.start(thread, shared.span);
  load_queries(thread, p, pass, shared);
  Column state{-infinity(), 0.0f};
  Outputs outputs = {};
  BROACH_ROLLED
  while (pass.span.find(thread, p, shared.span)) {
    Feed feed(p, pass, shared);
    feed.start(thread);
    BROACH_ROLLED
    for (int i = 0; i < shared.span.count; ++i) {
      const int at = shared.span.tiles[i];
      const KeyMask mask = union_of(shared.span, at);
      const int step = static_cast<int>(thread.index()) / kTileLanes % kSteps;
      float dots[kScoreBlocks][kTileElems] = {};
      BROACH_ROLLED
      for (int piece = 0; piece < kPieces; ++piece) {
        const unsigned short* const keys = feed.take(thread);
        if (mask.takes_step(step)) {
          score_piece(thread, shared, keys, piece * kPieceDims, pass.columns, dots);
        }
      }
      leave_scores(thread, shared, pass.columns, dots);
      sync_block(thread);
      soften_tile(thread, p, pass, at, shared, state);
      BROACH_ROLLED
      for (int piece = 0; piece < kPieces; ++piece) {
        const unsigned short* const values = feed.take(thread);
        PieceOutputs pv;
        value_piece(thread, shared, values, mask, pass.columns, pv);
        outputs.join(thread, piece, shared, pv);
      }
    }
    sync_block(thread);
  }
  copy_wait<0>();
  finish(thread, p, pass, state, outputs, shared);
}

BROACH_GLOBAL(broach_sparse_rows_mma, kMmaThreads, BroachSparseRows, NoShared) {
  MmaShared& block_shared = *static_cast<MmaShared*>(dynamic_shared(thread));
  const int first_row = static_cast<int>(thread.block_x()) * kTileRows;
  const int kv_head = static_cast<int>(thread.block_y());
  const int ratio = ratio_of(params);
  const int rows = min_of(kTileRows, params.attention.rows - first_row);
  if constexpr (kChecked) {
    for (int r = 0; r < rows; ++r) {
      check_selection(thread, params, Selection(params, first_row + r, kv_head));
    }
  }
  // Rows to be done, the rows of one slot at a time; then those that have to be done alone.
  unsigned remaining = (1u << rows) - 1u;
  unsigned alone = 0;
  BROACH_ROLLED
  while ((remaining | alone) != 0) {
    const bool is_shared = remaining != 0;
    const unsigned from = is_shared ? remaining : alone;
    int first = 0;
    while ((from >> first & 1u) == 0) ++first;
    const int slot = params.slots[first_row + first];
    unsigned active = 1u << first;
    for (int r = first + 1; is_shared && r < rows; ++r) {
      if ((from >> r & 1u) != 0 && params.slots[first_row + r] == slot) active |= 1u << r;
    }
    remaining &= ~active;
    if (!is_shared) alone &= ~active;
    Pass pass{{first_row, kv_head, active}, slot, ratio, rows * ratio};
    attend(thread, params, pass, block_shared);
    if constexpr (kControl == Control::kRerunDropped) continue;
    const bool is_alone = active == 1u << first;
    BROACH_ROLLED
    for (int column = 0; column < pass.columns; ++column) {
      // Every thread has read the flag before the block goes on to write others.
      if (block_shared.redo[column] == 0) continue;
      if (!is_alone) {
        alone |= 1u << pass.row_of(column);
        continue;
      }
      const Selection selection(params, first_row + first, kv_head);
      static_assert(sizeof(RerunShared) <= sizeof(block_shared.pieces), "the pieces' place");
      rerun<kMmaThreads>(thread, params, selection, first_row + first, kv_head,
                         kv_head * ratio + column % ratio,
                         *reinterpret_cast<RerunShared*>(block_shared.pieces));
      sync_block(thread);
    }
    sync_block(thread);
  }
}

}  // namespace broach::sparse_rows
