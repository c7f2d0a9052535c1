#pragma once

// window_rows decode, arith=tile64 and tile64_ex2 (softmax.cuh has the mathematics).
//
// Block: one (row, KV head, split of its tiles); grid = splits x KV heads x rows. Keys are the
// MMA's M side (16 a warp), the KV head's query heads its N side, padded to blocks of 8 columns. P
// x V runs transposed: dims are M, heads are N. With one split a CTA keeps an online softmax over
// its row's tiles and writes the output. With more (split-KV), each tile's (m, l, pv) goes to the
// workspace, and the last CTA of the row combines them in tile order, or a second kernel does
// (tile64_combine.cuh). The bits are the same: a tile is computed from a fresh state, and the chain
// that combines tiles is the same in the same order.
//
// Keys that the row does not see are never read: their rows of K and V are zeros in shared memory.
// Memory: KV stages of 64 keys x stage_dims dims of K, then of V (attention/kv_pipeline.cuh).
// Chips: sm_80 and later, and the host.

#include "attention/kv_pipeline.cuh"
#include "tiles/copy.cuh"
#include "tiles/fragments.cuh"
#include "tiles/mma.cuh"
#include "window_rows/softmax.cuh"
#include "window_rows/tile64_combine.cuh"
#include "window_rows/tile64_workspace.cuh"

namespace broach::window_rows {

constexpr attention::PipelineConfig kPipeline = kConfig.pipeline();
using DecodePipeline = attention::KvPipeline<kPipeline, kConfig.threads()>;

constexpr int kStagesOfK = kPipeline.stages_of_k();
constexpr int kStageStride = kPipeline.stage_stride();
constexpr int kStageElems = kPipeline.stage_elems();

constexpr int kHeads = 8 * kConfig.head_blocks;
constexpr int kQueryStride = kConfig.head_dim + kRowPadElems;
constexpr int kPStride = kConfig.tile_keys + kRowPadElems;

// Scores: four warps cover the tile's keys; a second four take the other head blocks.
constexpr int kScoreBlocks = kConfig.head_blocks * 4 / kConfig.warps;
// P x V: 16-dim units of a stage go round the warps.
constexpr int kStageUnits = kConfig.stage_dims / 16;
constexpr int kWarpUnits = (kStageUnits + kConfig.warps - 1) / kConfig.warps;

struct DecodeShared {
  alignas(16) unsigned short stages[kConfig.stages * kStageElems];
  alignas(16) unsigned short q[kHeads * kQueryStride];         // [head][dim]
  alignas(16) unsigned short p16[kHalves][kHeads * kPStride];  // [head][key], as it enters P x V
  alignas(16) float p[kHeads * kPStride];                      // [head][key]
  float maxima[4][kHeads];                                     // of 16 keys each
  float sums[kHeads];                                          // l, at the end
  unsigned redo[kHeads];                                       // head is not finite
  unsigned last_cta[4];
};
static_assert(sizeof(DecodeShared) == kConfig.shared_bytes, "the renderer states the same size");

/// The row a block works on, and its share of the row's tiles.
struct DecodeTask {
  int row, kv_head;
  int slot;
  KeyRange keys;
  int first_tile, last_tile;  // of this block
};

BROACH_DEVICE void load_queries(Thread thread, const Params& p, const DecodeTask& task,
                                DecodeShared& shared) {
  const int ratio = ratio_of(p);
  const unsigned short* const q = elements(p.attention.q) + task.row * p.attention.q_row_stride +
                                  task.kv_head * ratio * p.attention.q_head_stride;
  constexpr int kVectors = kConfig.head_dim / 8;
  for (int vector = static_cast<int>(thread.index()); vector < kHeads * kVectors;
       vector += kConfig.threads()) {
    const int head = vector / kVectors;
    const int column = vector % kVectors * 8;
    const bool present = head < ratio;
    copy_16_bytes(shared.q + head * kQueryStride + column,
                  q + (present ? head : 0) * p.attention.q_head_stride + column, present);
  }
}

/// Adds one stage of K to the dot products of this warp's 16 keys.
BROACH_DEVICE void score_stage(Thread thread, const DecodeShared& shared,
                               const unsigned short* stage, int dims, int ratio,
                               float (&dots)[kScoreBlocks][4]) {
  const int warp = static_cast<int>(thread.warp());
  const unsigned short* const keys = stage + warp % 4 * 16 * kStageStride;
  BROACH_UNROLL
  for (int step = 0; step < kStageUnits; step += 2) {
    unsigned a[2][4];
    load_a(thread, a[0], keys + step * 16, kStageStride);
    if (step + 1 < kStageUnits) load_a(thread, a[1], keys + step * 16 + 16, kStageStride);
    BROACH_UNROLL
    for (int i = 0; i < kScoreBlocks; ++i) {
      const int block = warp / 4 * kScoreBlocks + i;
      if (kConfig.generic && block * 8 >= ratio) continue;
      unsigned b[4];
      load_b_two_steps(thread, b, shared.q + block * 8 * kQueryStride + dims + step * 16,
                       kQueryStride);
      const unsigned first[2] = {b[0], b[1]};
      const unsigned second[2] = {b[2], b[3]};
      mma_m16n8k16<kConfig.dtype>(thread, dots[i], a[0], first);
      if (step + 1 < kStageUnits) mma_m16n8k16<kConfig.dtype>(thread, dots[i], a[1], second);
    }
  }
}

/// Turns dot products into scores and leaves each warp's maxima in shared memory.
BROACH_DEVICE void finish_scores(Thread thread, const Params& p, const DecodeTask& task, int tile,
                                 DecodeShared& shared, float (&dots)[kScoreBlocks][4]) {
  const int warp = static_cast<int>(thread.warp());
  const int lane = static_cast<int>(thread.lane());
  const int key = tile * kConfig.tile_keys + warp % 4 * 16 + lane / 4;
  const float factor = attention::exponent_factor<kSoftmax>(p.attention);
  BROACH_UNROLL
  for (int i = 0; i < kScoreBlocks; ++i) {
    float exponents[4];
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) {
      const bool seen = task.keys.holds(key + e / 2 * 8);
      const float score = attention::score_of<kSoftmax>(p.attention, dots[i][e]);
      exponents[e] = seen ? attention::exponent_of<kSoftmax>(score, factor) : -infinity();
      dots[i][e] = kSoftmax.is_ex2() ? score : exponents[e];
    }
    BROACH_UNROLL
    for (int column = 0; column < 2; ++column) {
      float most = larger(exponents[column], exponents[column + 2]);
      BROACH_UNROLL
      for (unsigned mask = 4; mask < 32; mask *= 2) {
        most = larger(most, shuffle_xor(thread, most, mask));
      }
      const int head = (warp / 4 * kScoreBlocks + i) * 8 + lane % 4 * 2 + column;
      if (lane < 4) shared.maxima[warp % 4][head] = most;
    }
  }
}

BROACH_DEVICE float tile_maximum(const DecodeShared& shared, int head) {
  return larger(larger(shared.maxima[0][head], shared.maxima[1][head]),
                larger(shared.maxima[2][head], shared.maxima[3][head]));
}

/// Leaves P of this warp's keys in shared memory, fp32 for the sum and 16-bit for P x V.
BROACH_DEVICE void softmax_tile(Thread thread, const Params& params,
                                [[maybe_unused]] const DecodeTask& task, [[maybe_unused]] int tile,
                                DecodeShared& shared, const float (&scores)[kScoreBlocks][4]) {
  const int warp = static_cast<int>(thread.warp());
  const int lane = static_cast<int>(thread.lane());
  const float factor = attention::exponent_factor<kSoftmax>(params.attention);
  BROACH_UNROLL
  for (int i = 0; i < kScoreBlocks; ++i) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int head = (warp / 4 * kScoreBlocks + i) * 8 + lane % 4 * 2 + e % 2;
      const int key = warp % 4 * 16 + lane / 4 + e / 2 * 8;
      const int at = head * kPStride + key;
      float p = attention::p_of<kSoftmax>(scores[i][e], factor, tile_maximum(shared, head));
      if constexpr (kSoftmax.is_ex2()) {
        if (!task.keys.holds(tile * kConfig.tile_keys + key)) p = 0.0f;
      }
      const attention::SplitP halves = attention::split_p<kSoftmax>(p);
      shared.p[at] = p;
      shared.p16[0][at] = halves.high;
      if constexpr (kConfig.p32) shared.p16[1][at] = halves.low;
    }
  }
}

/// pv of this warp's 16-dim units of one stage of V.
BROACH_DEVICE void multiply_stage(Thread thread, const DecodeShared& shared,
                                  const unsigned short* stage, int ratio,
                                  float (&pv)[kWarpUnits][kConfig.head_blocks][4]) {
  const int warp = static_cast<int>(thread.warp());
  BROACH_UNROLL
  for (int u = 0; u < kWarpUnits; ++u) {
    BROACH_UNROLL
    for (int block = 0; block < kConfig.head_blocks; ++block) {
      BROACH_UNROLL
      for (int e = 0; e < 4; ++e) pv[u][block][e] = 0.0f;
    }
  }
  BROACH_UNROLL
  for (int keys = 0; keys < kConfig.tile_keys; keys += 32) {
    unsigned b[kHalves][kConfig.head_blocks][4];
    BROACH_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      BROACH_UNROLL
      for (int block = 0; block < kConfig.head_blocks; ++block) {
        if (kConfig.generic && block * 8 >= ratio) continue;
        load_b_two_steps(thread, b[half][block], shared.p16[half] + block * 8 * kPStride + keys,
                         kPStride);
      }
    }
    BROACH_UNROLL
    for (int step = 0; step < 2; ++step) {
      BROACH_UNROLL
      for (int u = 0; u < kWarpUnits; ++u) {
        const int unit = warp + u * kConfig.warps;
        if (kStageUnits % kConfig.warps != 0 && unit >= kStageUnits) continue;
        unsigned a[4];
        load_a_transposed(thread, a, stage + (keys + step * 16) * kStageStride + unit * 16,
                          kStageStride);
        BROACH_UNROLL
        for (int block = 0; block < kConfig.head_blocks; ++block) {
          if (kConfig.generic && block * 8 >= ratio) continue;
          BROACH_UNROLL
          for (int half = 0; half < kHalves; ++half) {
            const unsigned b_step[2] = {b[half][block][step * 2], b[half][block][step * 2 + 1]};
            mma_m16n8k16<kConfig.dtype>(thread, pv[u][block], a, b_step);
          }
        }
      }
    }
  }
}

/// l_t of head `block * 8 + lane / 4`, in every lane of that head.
BROACH_DEVICE float tile_sum(Thread thread, const DecodeShared& shared, int block) {
  const int lane = static_cast<int>(thread.lane());
  const float* const row = shared.p + (block * 8 + lane / 4) * kPStride;
  return attention::sum_of_classes(thread,
                                   attention::class_sum<kConfig.tile_keys>(row + lane % 4 * 2));
}

/// The online softmax of a CTA that has all of its row's tiles.
struct OnlineSoftmax {
  float o[kStagesOfK][kWarpUnits][kConfig.head_blocks][4];
  float maximum[kConfig.head_blocks][2];  ///< M of heads block * 8 + 2 (lane % 4) and the next.
  float sum;                              ///< l of head warp * 8 + lane / 4.
  float sum_maximum;
  // How the tile at hand joins.
  Rescale rescales[kConfig.head_blocks][2];
  Rescale sum_rescale;

  BROACH_DEVICE void start() {
    sum_maximum = -infinity();
    BROACH_UNROLL
    for (int block = 0; block < kConfig.head_blocks; ++block) {
      maximum[block][0] = maximum[block][1] = -infinity();
    }
  }

  BROACH_DEVICE void begin_tile(Thread thread, const DecodeShared& shared) {
    const int warp = static_cast<int>(thread.warp());
    const int lane = static_cast<int>(thread.lane());
    BROACH_UNROLL
    for (int block = 0; block < kConfig.head_blocks; ++block) {
      BROACH_UNROLL
      for (int column = 0; column < 2; ++column) {
        rescales[block][column] = TileSoftmax::rescale(
            maximum[block][column], tile_maximum(shared, block * 8 + lane % 4 * 2 + column));
      }
    }
    if (warp < kConfig.head_blocks) {
      sum_rescale = TileSoftmax::rescale(sum_maximum, tile_maximum(shared, warp * 8 + lane / 4));
    }
  }

  /// The outputs are registers, which no run-time index reaches.
  BROACH_DEVICE void add_tile(int stage, const float (&pv)[kWarpUnits][kConfig.head_blocks][4]) {
    BROACH_UNROLL
    for (int at = 0; at < kStagesOfK; ++at) {
      if (at != stage) continue;
      BROACH_UNROLL
      for (int u = 0; u < kWarpUnits; ++u) {
        BROACH_UNROLL
        for (int block = 0; block < kConfig.head_blocks; ++block) {
          BROACH_UNROLL
          for (int e = 0; e < 4; ++e) {
            o[at][u][block][e] = rescales[block][e % 2].apply(o[at][u][block][e], pv[u][block][e]);
          }
        }
      }
    }
  }

  /// Writes the row's outputs; `shared.redo` says after the next barrier which heads are not
  /// finite.
  ///
  /// Through the KV stages, so that the division is compiled once instead of for all that a lane
  /// holds.
  BROACH_DEVICE void finish(Thread thread, const Params& p, const DecodeTask& task,
                            DecodeShared& shared) {
    const int ratio = ratio_of(p);
    const int warp = static_cast<int>(thread.warp());
    const int lane = static_cast<int>(thread.lane());
    if (warp < kConfig.head_blocks && lane % 4 == 0) {
      const int head = warp * 8 + lane / 4;
      if (kAddsSink && head < ratio) {
        attention::add_sink<kSoftmax>(sum_maximum, p.attention.sinks[task.kv_head * ratio + head],
                                      sum);
      }
      shared.sums[head] = sum;
      shared.redo[head] = 0;
    }
    auto* const staged = reinterpret_cast<float*>(shared.stages);  // [head][dim of the stage]
    static_assert(kHeads * kConfig.stage_dims * 4 <= kConfig.stages * kStageElems * 2,
                  "fits in the stages");
    BROACH_ROLLED
    for (int stage = 0; stage < kStagesOfK; ++stage) {
      sync_block(thread);
      BROACH_UNROLL
      for (int at = 0; at < kStagesOfK; ++at) {
        if (at == stage) write_to_shared(thread, p, task, o[at], staged);
      }
      sync_block(thread);
      BROACH_ROLLED
      for (int i = static_cast<int>(thread.index()); i < ratio * kConfig.stage_dims;
           i += kConfig.threads()) {
        const int head = i / kConfig.stage_dims;
        const unsigned short bits = rounded_output(div_rn(staged[i], shared.sums[head]));
        elements(p.attention.out)[task.row * p.attention.out_row_stride +
                                  (task.kv_head * ratio + head) * p.attention.out_head_stride +
                                  stage * kConfig.stage_dims + i % kConfig.stage_dims] = bits;
        if (!is_finite_half<kConfig.dtype>(bits)) shared.redo[head] = 1;
      }
    }
  }

 private:
  /// Leaves a stage's dims of o, with what a sink leaves of them, in shared memory.
  BROACH_DEVICE void write_to_shared(Thread thread, const Params& p, const DecodeTask& task,
                                     const float (&of_stage)[kWarpUnits][kConfig.head_blocks][4],
                                     float* staged) const {
    const int ratio = ratio_of(p);
    const int warp = static_cast<int>(thread.warp());
    const int lane = static_cast<int>(thread.lane());
    BROACH_UNROLL
    for (int block = 0; block < kConfig.head_blocks; ++block) {
      BROACH_UNROLL
      for (int column = 0; column < 2; ++column) {
        const int head = block * 8 + lane % 4 * 2 + column;
        if (head >= ratio) continue;
        float sink_rescale = 1.0f;
        if constexpr (kAddsSink) {
          float unused = 0.0f;
          sink_rescale = attention::add_sink<kSoftmax>(
              maximum[block][column], p.attention.sinks[task.kv_head * ratio + head], unused);
        }
        BROACH_UNROLL
        for (int u = 0; u < kWarpUnits; ++u) {
          const int unit = warp + u * kConfig.warps;
          if (kStageUnits % kConfig.warps != 0 && unit >= kStageUnits) continue;
          BROACH_UNROLL
          for (int half = 0; half < 2; ++half) {
            const float value = of_stage[u][block][column + 2 * half];
            staged[head * kConfig.stage_dims + unit * 16 + lane / 4 + half * 8] =
                kAddsSink ? mul_rn(value, sink_rescale) : value;
          }
        }
      }
    }
  }
};

/// Leaves a stage's dims of a tile's pv as a partial.
BROACH_DEVICE void write_partial(Thread thread, const Params& p, const DecodeTask& task, int index,
                                 int stage, const float (&pv)[kWarpUnits][kConfig.head_blocks][4]) {
  const Tile64Partials partials(p, task.row, task.kv_head);
  const int ratio = ratio_of(p);
  const int warp = static_cast<int>(thread.warp());
  const int lane = static_cast<int>(thread.lane());
  BROACH_UNROLL
  for (int u = 0; u < kWarpUnits; ++u) {
    const int unit = warp + u * kConfig.warps;
    if (kStageUnits % kConfig.warps != 0 && unit >= kStageUnits) continue;
    BROACH_UNROLL
    for (int block = 0; block < kConfig.head_blocks; ++block) {
      BROACH_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int head = block * 8 + lane % 4 * 2 + e % 2;
        const int dim = stage * kConfig.stage_dims + unit * 16 + lane / 4 + e / 2 * 8;
        if (head < ratio) partials.values(index, head)[dim] = pv[u][block][e];
      }
    }
  }
}

/// Computes the CTA's tiles; writes the row's output, or leaves each tile as a partial.
///
/// Both are one loop, so that its MMAs are compiled once: they are most of what a compiler has to
/// do, and first use waits for it.
BROACH_DEVICE void decode_tiles(Thread thread, const Params& p, const DecodeTask& task,
                                bool is_one_cta, DecodeShared& shared) {
  const int ratio = ratio_of(p);
  const int warp = static_cast<int>(thread.warp());
  const int lane = static_cast<int>(thread.lane());
  DecodePipeline pipeline(
      {kv_of(p, task.slot, task.kv_head), task.keys, task.first_tile, task.last_tile},
      shared.stages);
  load_queries(thread, p, task, shared);
  pipeline.start(thread);

  OnlineSoftmax online{};
  online.start();
  BROACH_ROLLED
  for (int tile = task.first_tile; tile <= task.last_tile; ++tile) {
    const int index = tile - task.keys.first_tile<kConfig.tile_keys>();
    float scores[kScoreBlocks][4] = {};
    BROACH_ROLLED
    for (int stage = 0; stage < kStagesOfK; ++stage) {
      score_stage(thread, shared, pipeline.wait(thread), stage * kConfig.stage_dims, ratio, scores);
    }
    finish_scores(thread, p, task, tile, shared, scores);
    sync_block(thread);
    softmax_tile(thread, p, task, tile, shared, scores);
    if (is_one_cta) online.begin_tile(thread, shared);
    BROACH_ROLLED
    for (int stage = 0; stage < kStagesOfK; ++stage) {
      const unsigned short* const values = pipeline.wait(thread);
      if (stage == 0 && warp < kConfig.head_blocks) {
        const float sum = tile_sum(thread, shared, warp);
        const int head = warp * 8 + lane / 4;
        if (is_one_cta) {
          online.sum = online.sum_rescale.apply(online.sum, sum);
        } else if (lane % 4 == 0 && head < ratio) {
          const Tile64Partials partials(p, task.row, task.kv_head);
          partials.maximum(index, head) = tile_maximum(shared, head);
          partials.sum(index, head) = sum;
        }
      }
      float pv[kWarpUnits][kConfig.head_blocks][4];
      multiply_stage(thread, shared, values, ratio, pv);
      if (is_one_cta) {
        online.add_tile(stage, pv);
      } else {
        write_partial(thread, p, task, index, stage, pv);
      }
    }
  }
  if (is_one_cta) online.finish(thread, p, task, shared);
}

BROACH_GLOBAL(broach_window_rows_tile64_decode, kConfig.threads(), BroachWindowRowsTile64Decode,
              NoShared) {
  const Params& p = params.decode;
  DecodeShared& block_shared = *static_cast<DecodeShared*>(dynamic_shared(thread));
  DecodeTask task;
  task.row = static_cast<int>(thread.block_z());
  task.kv_head = static_cast<int>(thread.block_y());
  task.slot = p.slots[task.row];
  task.keys = keys_of_row(thread, p, task.row);
  const int first_tile = task.keys.first_tile<kConfig.tile_keys>();
  const int last_tile = task.keys.last_tile<kConfig.tile_keys>();
  const int tiles = last_tile - first_tile + 1;
  check_partials(thread, p, tiles, task.keys.last);
  task.first_tile = first_tile + static_cast<int>(thread.block_x()) * params.tiles_a_split;
  if (task.first_tile > last_tile) return;
  const int end = task.first_tile + params.tiles_a_split - 1;
  task.last_tile = end < last_tile ? end : last_tile;

  const bool is_one_cta = params.schedule == BROACH_TILE64_ONE_CTA;
  decode_tiles(thread, p, task, is_one_cta, block_shared);
  const int ratio = ratio_of(p);
  if (!is_one_cta) {
    if (params.schedule == BROACH_TILE64_COMBINE_KERNEL) return;
    const int ctas = (tiles + params.tiles_a_split - 1) / params.tiles_a_split;
    const int pair = task.row * p.cache.kv_heads + task.kv_head;
    if (!is_last_cta(thread, p, pair, params.launch, ctas, block_shared.last_cta)) return;
    static_assert(sizeof(CombineShared) <= sizeof(block_shared.stages), "fits in the stages");
    auto& combine_shared = *reinterpret_cast<CombineShared*>(block_shared.stages);
    constexpr int kFit = kCombineValues / kConfig.head_dim;
    constexpr int kAtOnce = kConfig.ratio < kFit ? kConfig.ratio : kFit;
    BROACH_ROLLED
    for (int head = 0; head < ratio; head += kAtOnce) {
      combine_heads<kAtOnce, kConfig.threads(), kConfig.threads(), kPrefetchInDecode>(
          thread, p, task.row, task.kv_head, head, task.keys, combine_shared,
          block_shared.redo + head);
      sync_block(thread);
    }
  }
  sync_block(thread);
  rerun_heads<kConfig.threads()>(thread, p, task.row, task.kv_head, 0, ratio, task.slot, task.keys,
                                 block_shared.redo,
                                 *reinterpret_cast<attention::Float64Shared*>(block_shared.stages));
}

}  // namespace broach::window_rows
