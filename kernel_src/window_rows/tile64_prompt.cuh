#pragma once

// window_rows prompt, arith=tile64 (tile64_arith.cuh has the mathematics): the bits of the decode
// form for every row.
//
// Block: 64 consecutive rows of one sequence x one query head, kPromptWarps warps; grid = row
// blocks x query heads. A warp has a band of 16 rows as the matrix step's M side, keys on its N
// side; P goes from accumulators to operands in registers. Above head_dim 256 two warps share a
// band: each computes its scores and has half of the output columns.
// Rows fold as they go. A row that sees no key of a tile is left alone, bit for bit.
//
// V of keys that some rows of a block see and others do not is in every row's product: 0 x infinity
// would reach rows that do not see the key. Where a partly seen tile's product is not finite, the
// chain runs again a row at a time with the unseen keys' values as zero.
// Memory: queries [64][D], then the pieces' ring. Chips: sm_80 and later, and the host.

#include "tiles/fragments.cuh"
#include "tiles/mma.cuh"
#include "window_rows/float64_rerun.cuh"
#include "window_rows/tile64_arith.cuh"
#include "window_rows/tile64_pieces.cuh"

namespace broach::tile64 {

constexpr int kPromptThreads = kPromptWarps * 32;
constexpr int kColumnSplit = kPromptWarps / 4;
constexpr int kPromptQueryStride = kHeadDim + kRowPad;
constexpr int kKeyBlocks = kTileKeys / 8;
constexpr int kTileSteps = kTileKeys / 16;
constexpr int kPromptHalves = kP32 ? 2 : 1;

// Output columns of a warp in one piece, worked on in chunks that keep their product in registers.
constexpr int kPieceColumns = kPieceDims / kColumnSplit;
// Where a warp's outputs take 128 registers already, P's second half or a generic kernel's run-time
// values leave room for the smaller chunk only.
constexpr bool kWideChunks = kPieceColumns % 32 == 0 && (kHeadDim < 256 || !(kGeneric || kP32));
constexpr int kChunkColumns = kWideChunks ? 32 : 16;
constexpr int kChunks = kPieceColumns / kChunkColumns;
constexpr int kChunkBlocks = kChunkColumns / 8;

struct PromptShared {
  alignas(16) unsigned short q[kPromptRows * kPromptQueryStride];  // [row][dim]
  alignas(16) unsigned short pieces[kStages * kPieceElems];
  int last[kPromptRows];
  unsigned redo[kPromptRows];
};
static_assert(sizeof(PromptShared) == kPromptSharedBytes, "the renderer states the same size");

/// The rows a block works on. Rows are counted over all sequences.
struct PromptTask {
  int slot;
  int first_row, rows;    // of this block
  int position;           // of its first row
  int sequence_position;  // p0
  int past;               // first position behind the sequence's chunk
  int head, kv_head;
};

/// Finds the block's sequence and rows; false where the grid has more blocks than rows need.
BROACH_DEVICE bool find_task(Thread thread, const BroachWindowRowsTile64Prompt& params,
                             PromptTask& task) {
  const BroachWindowRowsDecode& p = params.common;
  int block = static_cast<int>(thread.block_x());
  task.head = static_cast<int>(thread.block_y());
  task.kv_head = task.head / ratio_of(p);
  for (int sequence = 0; sequence < params.sequences; ++sequence) {
    const int begin = params.offsets[sequence];
    const int count = params.offsets[sequence + 1] - begin;
    const int blocks = (count + kPromptRows - 1) / kPromptRows;
    if (block >= blocks) {
      block -= blocks;
      continue;
    }
    task.slot = p.slots[sequence];
    task.first_row = begin + block * kPromptRows;
    const int rest = count - block * kPromptRows;
    task.rows = rest < kPromptRows ? rest : kPromptRows;
    task.sequence_position = p.positions[sequence];
    task.position = task.sequence_position + block * kPromptRows;
    task.past = task.sequence_position + count;
    return true;
  }
  return false;
}

/// Keys that row `row` of the block sees; none for rows the block does not have.
BROACH_DEVICE KeyRange keys_of(const BroachWindowRowsDecode& p, const PromptTask& task,
                               const PromptShared& shared, int row) {
  if (row >= task.rows) return {0, -1};
  return {first_key(p, task.position + row), shared.last[row]};
}

/// Leaves each row's last key in shared memory.
BROACH_DEVICE void load_last_keys(Thread thread, const BroachWindowRowsTile64Prompt& params,
                                  const PromptTask& task, PromptShared& shared) {
  const int row = static_cast<int>(thread.index());
  if (row >= kPromptRows) return;
  const BroachWindowRowsDecode& p = params.common;
  if constexpr (kChecked) {
    const Layout layout = kGeneric ? static_cast<Layout>(p.layout) : kLayout;
    if (layout == Layout::kRing && task.past - first_key(p, task.sequence_position) > p.length) {
      fail(thread, "the ring does not hold the window and the chunk's rows", task.past);
    }
  }
  int last = task.position + row;
  if (row < task.rows) {
    if (params.hi != nullptr && kControl != Control::kHiIgnored) {
      last = params.hi[task.first_row + row];
      if constexpr (kChecked) {
        if (last < task.position + row || last >= task.past) {
          fail(thread, "hi is not between the row's position and the chunk's end", last);
        }
      }
    }
    check_row(thread, p, task.slot, first_key(p, task.position + row), last);
  }
  shared.last[row] = last;
  shared.redo[row] = 0;
}

BROACH_DEVICE void load_prompt_queries(Thread thread, const BroachWindowRowsDecode& p,
                                       const PromptTask& task, PromptShared& shared) {
  const unsigned short* const q =
      p.q + task.first_row * p.q_row_stride + task.head * p.q_head_stride;
  constexpr int kVectors = kHeadDim / 8;
  for (int vector = static_cast<int>(thread.index()); vector < kPromptRows * kVectors;
       vector += kPromptThreads) {
    const int row = vector / kVectors;
    const int column = vector % kVectors * 8;
    const bool present = row < task.rows;
    copy_16_bytes(shared.q + row * kPromptQueryStride + column,
                  q + (present ? row : 0) * p.q_row_stride + column, present);
  }
}

/// Adds one K piece to the dot products of this warp's 16 rows with the tile's 64 keys.
BROACH_DEVICE void prompt_score_piece(Thread thread, const unsigned short* queries,
                                      const unsigned short* piece, float (&dots)[kKeyBlocks][4]) {
  BROACH_UNROLL
  for (int step = 0; step < kPieceDims / 16; ++step) {
    unsigned a[4];
    load_a(thread, a, queries + step * 16, kPromptQueryStride);
    BROACH_UNROLL
    for (int block = 0; block < kKeyBlocks; block += 2) {
      unsigned b[4];
      load_b_two_blocks(thread, b, piece + block * 8 * kPieceStride + step * 16, kPieceStride);
      const unsigned first[2] = {b[0], b[1]};
      const unsigned second[2] = {b[2], b[3]};
      mma_m16n8k16<kHalf>(thread, dots[block], a, first);
      mma_m16n8k16<kHalf>(thread, dots[block + 1], a, second);
    }
  }
}

/// What a warp's lane keeps of its two rows, lane / 4 and lane / 4 + 8 of the band.
struct BandRows {
  float maximum[2];
  float sum[2];
};

/// P of a tile as the operand of P x V, and how it joins.
struct BandWeights {
  unsigned a[kPromptHalves][kTileSteps][4];
  Fold folds[2];
  bool sees[2];  ///< Whether the row sees a key of the tile.
};

BROACH_DEVICE unsigned pack(unsigned short low, unsigned short high) {
  return low | static_cast<unsigned>(high) << 16;
}

/// Turns a tile's dot products into weights and joins the rows' maxima and sums.
///
/// Says whether one of the lane's rows sees some of the tile's keys, but not all. A row's keys are
/// looked up here, tile by tile: registers are short.
BROACH_DEVICE bool weigh_band(Thread thread, const BroachWindowRowsDecode& p,
                              const PromptTask& task, const PromptShared& shared, int tile,
                              BandRows& rows, float (&scores)[kKeyBlocks][4],
                              BandWeights& weights) {
  const int lane = static_cast<int>(thread.lane());
  const int band = static_cast<int>(thread.warp()) % 4;
  const int first_key = tile * kTileKeys;
  const int last_key = first_key + kTileKeys - 1;
  bool partly = false;
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    const KeyRange keys = keys_of(p, task, shared, band * 16 + lane / 4 + 8 * r);
    weights.sees[r] = keys.first <= last_key && keys.last >= first_key;
    partly = partly || (weights.sees[r] && (keys.first > first_key || keys.last < last_key));
    float most = -infinity();
    BROACH_UNROLL
    for (int block = 0; block < kKeyBlocks; ++block) {
      BROACH_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& s = scores[block][2 * r + i];
        s = keys.holds(first_key + block * 8 + lane % 4 * 2 + i) ? score_of(p, s) : -infinity();
        most = larger(most, s);
      }
    }
    most = larger(most, shuffle_xor(thread, most, 1));
    most = larger(most, shuffle_xor(thread, most, 2));
    float sum = 0.0f;
    BROACH_UNROLL
    for (int block = 0; block < kKeyBlocks; ++block) {
      float weight[2];
      Weight halves[2];
      BROACH_UNROLL
      for (int i = 0; i < 2; ++i) {
        weight[i] = weights.sees[r] ? exp32(sub_rn(scores[block][2 * r + i], most)) : 0.0f;
        halves[i] = split_weight(weight[i]);
      }
      const float pair = add_rn(weight[0], weight[1]);
      sum = block == 0 ? pair : add_rn(sum, pair);
      // Key block 2k is the low half of step k's operand, 2k + 1 the high half.
      const int word = block % 2 * 2 + r;
      weights.a[0][block / 2][word] = pack(halves[0].high, halves[1].high);
      if constexpr (kP32) weights.a[1][block / 2][word] = pack(halves[0].low, halves[1].low);
    }
    sum = join_classes(thread, sum);
    if (weights.sees[r]) {
      weights.folds[r] = fold_factors(rows.maximum[r], most);
      rows.sum[r] = weights.folds[r].join(rows.sum[r], sum);
    }
  }
  return partly;
}

/// A pair of values with those zeroed whose key is not in `keys`.
BROACH_DEVICE unsigned seen_pair(unsigned pair, const KeyRange& keys, int key) {
  return pair & ((keys.holds(key) ? 0xffffu : 0u) | (keys.holds(key + 1) ? 0xffff0000u : 0u));
}

/// pv of a chunk of columns; with `only`, keys outside it count as holding zeros.
BROACH_DEVICE void chunk_product(Thread thread, const BandWeights& weights,
                                 const unsigned short* values, int first_key, const KeyRange* only,
                                 float (&pv)[kChunkBlocks][4]) {
  const int lane = static_cast<int>(thread.lane());
  BROACH_UNROLL
  for (int block = 0; block < kChunkBlocks; ++block) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) pv[block][e] = 0.0f;
  }
  BROACH_UNROLL
  for (int step = 0; step < kTileSteps; ++step) {
    BROACH_UNROLL
    for (int block = 0; block < kChunkBlocks; block += 2) {
      unsigned b[4];
      load_b_transposed(thread, b, values + step * 16 * kPieceStride + block * 8, kPieceStride);
      if (only != nullptr) {
        BROACH_UNROLL
        for (int i = 0; i < 4; ++i) {
          b[i] = seen_pair(b[i], *only, first_key + step * 16 + i % 2 * 8 + lane % 4 * 2);
        }
      }
      BROACH_UNROLL
      for (int half = 0; half < kPromptHalves; ++half) {
        const unsigned first[2] = {b[0], b[1]};
        const unsigned second[2] = {b[2], b[3]};
        mma_m16n8k16<kHalf>(thread, pv[block], weights.a[half][step], first);
        mma_m16n8k16<kHalf>(thread, pv[block + 1], weights.a[half][step], second);
      }
    }
  }
}

/// Runs a chunk again for each of the band's rows with its unseen keys' values as zero.
BROACH_DEVICE void chunk_again(Thread thread, const BroachWindowRowsDecode& p,
                               const PromptTask& task, const PromptShared& shared, int band,
                               const BandWeights& weights, const unsigned short* values,
                               int first_key, float (&pv)[kChunkBlocks][4]) {
  const int lane = static_cast<int>(thread.lane());
  for (int row = 0; row < 16; ++row) {
    const KeyRange keys = keys_of(p, task, shared, band * 16 + row);
    float again[kChunkBlocks][4];
    chunk_product(thread, weights, values, first_key, &keys, again);
    if (lane / 4 != row % 8) continue;
    BROACH_UNROLL
    for (int block = 0; block < kChunkBlocks; ++block) {
      BROACH_UNROLL
      for (int e = 0; e < 4; ++e) {
        if (e / 2 == row / 8) pv[block][e] = again[block][e];
      }
    }
  }
}

BROACH_GLOBAL(broach_window_rows_tile64_prompt, kPromptThreads, BroachWindowRowsTile64Prompt,
              NoShared) {
  const BroachWindowRowsDecode& p = params.common;
  PromptShared& block_shared = *static_cast<PromptShared*>(dynamic_shared(thread));
  PromptTask task;
  if (!find_task(thread, params, task)) return;
  load_last_keys(thread, params, task, block_shared);
  sync_block(thread);
  KeyRange keys{first_key(p, task.position), 0};
  for (int row = 0; row < task.rows; ++row) {
    if (block_shared.last[row] > keys.last) keys.last = block_shared.last[row];
  }

  const int lane = static_cast<int>(thread.lane());
  const int band = static_cast<int>(thread.warp()) % 4;
  const int column_part = static_cast<int>(thread.warp()) / 4;
  BandRows rows;
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    rows.maximum[r] = -infinity();
    rows.sum[r] = 0.0f;
  }
  PieceFeed<kPromptThreads> feed(p, task.kv_head, task.slot, keys, keys.first_tile(),
                                 keys.last_tile(), block_shared.pieces);
  load_prompt_queries(thread, p, task, block_shared);
  feed.start(thread);

  float o[kPieces][kChunks][kChunkBlocks][4] = {};
  const unsigned short* const queries = block_shared.q + band * 16 * kPromptQueryStride;
  for (int tile = keys.first_tile(); tile <= keys.last_tile(); ++tile) {
    float scores[kKeyBlocks][4] = {};
    BROACH_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) {
      prompt_score_piece(thread, queries + piece * kPieceDims, feed.take(thread), scores);
    }
    BandWeights weights;
    const bool partly = weigh_band(thread, p, task, block_shared, tile, rows, scores, weights);
    const bool band_partly = any(thread, partly);
    const int first_key = tile * kTileKeys;
    BROACH_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) {
      const unsigned short* const values = feed.take(thread) + column_part * kPieceColumns;
      BROACH_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        float pv[kChunkBlocks][4];
        chunk_product(thread, weights, values + chunk * kChunkColumns, first_key, nullptr, pv);
        if (band_partly) {
          bool finite = true;
          BROACH_UNROLL
          for (int block = 0; block < kChunkBlocks; ++block) {
            BROACH_UNROLL
            for (int e = 0; e < 4; ++e) finite = finite && is_finite(pv[block][e]);
          }
          if (any(thread, !finite)) {
            chunk_again(thread, p, task, block_shared, band, weights,
                        values + chunk * kChunkColumns, first_key, pv);
          }
        }
        BROACH_UNROLL
        for (int block = 0; block < kChunkBlocks; ++block) {
          BROACH_UNROLL
          for (int e = 0; e < 4; ++e) {
            if (weights.sees[e / 2]) {
              o[piece][chunk][block][e] =
                  weights.folds[e / 2].join(o[piece][chunk][block][e], pv[block][e]);
            }
          }
        }
      }
    }
  }

  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = band * 16 + lane / 4 + 8 * r;
    if (row >= task.rows) continue;
    float keep = 1.0f;
    if constexpr (kJoinsSink) keep = join_sink(rows.maximum[r], p.sinks[task.head], rows.sum[r]);
    unsigned short* const out = p.out + (task.first_row + row) * p.out_row_stride +
                                task.head * p.out_head_stride + column_part * kPieceColumns;
    BROACH_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) {
      BROACH_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        BROACH_UNROLL
        for (int block = 0; block < kChunkBlocks; ++block) {
          unsigned short bits[2];
          BROACH_UNROLL
          for (int i = 0; i < 2; ++i) {
            bits[i] = narrow<kHalf>(finished(o[piece][chunk][block][2 * r + i], rows.sum[r], keep));
            if (!is_finite_half<kHalf>(bits[i])) block_shared.redo[row] = 1;
          }
          const int column = piece * kPieceDims + chunk * kChunkColumns + block * 8 + lane % 4 * 2;
          *reinterpret_cast<unsigned*>(out + column) = pack(bits[0], bits[1]);
        }
      }
    }
  }
  sync_block(thread);
  bool any_row = false;
  for (int row = 0; row < task.rows; ++row) any_row = any_row || block_shared.redo[row] != 0;
  if (!any_row) return;
  auto& scratch = *reinterpret_cast<RerunShared*>(block_shared.pieces);
  for (int row = 0; row < task.rows; ++row) {
    if (block_shared.redo[row] == 0 && kControl != Control::kWholeBlockRerun) continue;
    const int at = task.first_row + row;
    rerun_head<kPromptThreads>(thread, p, p.q + at * p.q_row_stride + task.head * p.q_head_stride,
                               p.out + at * p.out_row_stride + task.head * p.out_head_stride,
                               task.kv_head, task.head, task.slot,
                               keys_of(p, task, block_shared, row), scratch);
  }
}

}  // namespace broach::tile64
