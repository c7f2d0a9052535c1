#pragma once

// What a consumer warpgroup of a pipelined prefill does with one tile: WGMMAs to issue, the
// softmax, the rescale of O, and values to clean.

#include "tiles/wgmma.cuh"
#include "window_rows/prefill_slots.cuh"

namespace broach::window_rows {

#if defined(BROACH_CUDA)

/// A descriptor's low half for operands `bytes` on; the high half is the same for all.
BROACH_DEVICE unsigned long long with_high(unsigned low) {
  constexpr unsigned long long kSwizzle128 = 1ull << 62;
  constexpr unsigned long long kEightRows = 1024ull / 16 << 32;
  return kSwizzle128 | kEightRows | low;
}
BROACH_DEVICE unsigned descriptor_low(Thread thread, const unsigned short* tile) {
  const unsigned address = shuffle(thread, shared_address(tile), 0);
  return 1u << 16 | (address & 0x3ffffu) >> 4;
}

/// Steps kFrom to before kTo of the chain q . k over the dims, from zero.
template <int kFrom, int kTo>
BROACH_DEVICE void issue_scores(unsigned q, unsigned k, float (&scores)[kKeyBlocks][4]) {
  BROACH_UNROLL
  for (int step = kFrom; step < kTo; ++step) {
    const unsigned within = step / 4 * kSwizzledUnits + step % 4 * kSixteenColumns;
    wgmma_m64n64k16<kConfig.dtype>(scores, with_high(q + within), with_high(k + within), step > 0);
  }
}

/// pv of one chunk of 64 columns.
BROACH_DEVICE void issue_product(const BandP& p_of_tile, unsigned v, int chunk,
                                 float (&pv)[kChunkBlocks][4]) {
  BROACH_UNROLL
  for (int step = 0; step < kTileSteps; ++step) {
    BROACH_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      wgmma_m64n64k16<kConfig.dtype>(pv, p_of_tile.a[half][step],
                                     with_high(v + chunk * kSwizzledUnits + step * kSixteenRows),
                                     step + half > 0);
    }
  }
}

/// Tiles that all rows of a warp see whole.
struct WholeTiles {
  int first, last;

  BROACH_DEVICE WholeTiles(Thread thread, const PipelineShared& shared) {
    const int row = band_of(thread) * 16 + static_cast<int>(thread.lane()) % 16;
    int from = shared.keys[row].first;
    int to = shared.keys[row].last;
    BROACH_UNROLL
    for (unsigned mask = 1; mask < 16; mask *= 2) {
      const int other_from = shuffle_xor(thread, from, mask);
      const int other_to = shuffle_xor(thread, to, mask);
      from = other_from > from ? other_from : from;
      to = other_to < to ? other_to : to;
    }
    first = shuffle(thread, (from + kTileKeys - 1) / kTileKeys, 0);
    last = shuffle(thread, (to + 1) / kTileKeys - 1, 0);
  }
  BROACH_DEVICE bool holds(int tile) const { return tile >= first && tile <= last; }
};

/// What a consumer lane knows of its two rows.
struct LaneRows {
  BandRows band;
  bool sees[2];  ///< Whether each sees a key of the tile at hand.
};

/// Turns a tile's dot products into scores, unseen keys' to -infinity, and finds the rows' maxima.
BROACH_DEVICE void finish_tile_scores(Thread thread, const Params& p, const PipelineShared& shared,
                                      const WholeTiles& whole, int tile,
                                      float (&scores)[kKeyBlocks][4], float (&most)[2],
                                      LaneRows& rows) {
  const int lane = static_cast<int>(thread.lane());
  BROACH_UNROLL
  for (int block = 0; block < kKeyBlocks; ++block) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) {
      scores[block][e] = attention::score_of<kSoftmax>(p.attention, scores[block][e]);
    }
  }
  const float factor = attention::nonzero_factor<kSoftmax>(p.attention);
  if constexpr (kSoftmax.is_ex2()) {
    if (attention::exponent_factor<kSoftmax>(p.attention) == 0.0f) {
      BROACH_UNROLL
      for (int block = 0; block < kKeyBlocks; ++block) {
        BROACH_UNROLL
        for (int e = 0; e < 4; ++e) scores[block][e] = mul_rn(scores[block][e], 0.0f);
      }
    }
  }
  rows.sees[0] = rows.sees[1] = true;
  if (!whole.holds(tile)) {
    rows.band.partly = true;
    BROACH_UNROLL
    for (int r = 0; r < 2; ++r) {
      const KeyRange keys = shared.keys[band_of(thread) * 16 + lane / 4 + 8 * r];
      rows.sees[r] = keys.first < (tile + 1) * kTileKeys && keys.last >= tile * kTileKeys;
      BROACH_UNROLL
      for (int block = 0; block < kKeyBlocks; ++block) {
        BROACH_UNROLL
        for (int i = 0; i < 2; ++i) {
          if (!keys.holds(tile * kTileKeys + block * 8 + lane % 4 * 2 + i)) {
            scores[block][2 * r + i] = attention::unseen_score<kSoftmax>(factor);
          }
        }
      }
    }
  }
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    const auto pair = [&](int block) {
      return larger(attention::exponent_of<kSoftmax>(scores[block][2 * r], factor),
                    attention::exponent_of<kSoftmax>(scores[block][2 * r + 1], factor));
    };
    most[r] = pair(0);
    BROACH_UNROLL
    for (int block = 1; block < kKeyBlocks; ++block) most[r] = larger(most[r], pair(block));
    most[r] = larger(most[r], shuffle_xor(thread, most[r], 1));
    most[r] = larger(most[r], shuffle_xor(thread, most[r], 2));
  }
}

/// Rescales part kPart of kParts of a chunk of o, and adds its product.
///
/// A row that sees no key of the tile has the factors 1 and -0: o + -0 is o, whatever o is.
template <int kPart, int kParts>
BROACH_DEVICE void rescale_part(const Rescale (&rescales)[2], const float (&pv)[kChunkBlocks][4],
                                float (&o)[kChunkBlocks][4]) {
  BROACH_UNROLL
  for (int block = kPart * kChunkBlocks / kParts; block < (kPart + 1) * kChunkBlocks / kParts;
       ++block) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) o[block][e] = rescales[e / 2].apply(o[block][e], pv[block][e]);
  }
}

/// P of one block of 8 keys, and its part of the rows' sums.
template <int kBlock>
BROACH_DEVICE void softmax_block(const float (&scores)[kKeyBlocks][4], float factor,
                                 const float (&base)[2], float (&sums)[2], BandP& p_of_tile) {
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float first = attention::p_of<kSoftmax>(scores[kBlock][2 * r], factor, base[r]);
    const float second = attention::p_of<kSoftmax>(scores[kBlock][2 * r + 1], factor, base[r]);
    const attention::SplitPPair halves = attention::split_p_pair<kSoftmax>(first, second);
    const float pair = add_rn(first, second);
    sums[r] = kBlock == 0 ? pair : add_rn(sums[r], pair);
    // Key block 2k is the low half of step k's operand, 2k + 1 the high half.
    p_of_tile.a[0][kBlock / 2][kBlock % 2 * 2 + r] = halves.high;
    if constexpr (kConfig.p32) p_of_tile.a[1][kBlock / 2][kBlock % 2 * 2 + r] = halves.low;
  }
}

/// Exponentials of a tile, with the rescaling of the chunk before strewn in: it fills the issue
/// slots that they leave.
template <bool kRescales>
BROACH_DEVICE void softmax_tile(Thread thread, const Params& p,
                                const float (&scores)[kKeyBlocks][4], const float (&most)[2],
                                const float (&pv)[kChunkBlocks][4], float (&o)[kChunkBlocks][4],
                                LaneRows& rows, BandP& p_of_tile) {
  const Rescale before[2] = {p_of_tile.rescales[0], p_of_tile.rescales[1]};
  const float factor = attention::nonzero_factor<kSoftmax>(p.attention);
  float base[2];
  float sums[2];
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    base[r] = rows.sees[r] ? TileSoftmax::base(rows.band.maximum[r], most[r]) : 0.0f;
  }
#define BROACH_SOFTMAX_BLOCK(n)                            \
  softmax_block<n>(scores, factor, base, sums, p_of_tile); \
  if constexpr (kRescales) rescale_part<n, kKeyBlocks>(before, pv, o)
  BROACH_SOFTMAX_BLOCK(0);
  BROACH_SOFTMAX_BLOCK(1);
  BROACH_SOFTMAX_BLOCK(2);
  BROACH_SOFTMAX_BLOCK(3);
  BROACH_SOFTMAX_BLOCK(4);
  BROACH_SOFTMAX_BLOCK(5);
  BROACH_SOFTMAX_BLOCK(6);
  BROACH_SOFTMAX_BLOCK(7);
#undef BROACH_SOFTMAX_BLOCK
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    p_of_tile.rescales[r] = {1.0f, -0.0f};
    if (rows.sees[r]) p_of_tile.rescales[r] = TileSoftmax::rescale(rows.band.maximum[r], most[r]);
    rows.band.sum[r] =
        p_of_tile.rescales[r].apply(rows.band.sum[r], attention::sum_of_classes(thread, sums[r]));
  }
}

/// Zeros V of the keys behind the block's last, which nobody wrote; where the block runs again,
/// `clean`, takes non-finite values as zero and leaves the rows that see one to the float64 re-run.
/// Every consumer takes part.
BROACH_DEVICE void clean_values(Thread thread, int tile, int last_key, bool clean,
                                unsigned short* values, PipelineShared& shared) {
  constexpr int kVectors = kConfig.head_dim / 8;
  BROACH_ROLLED
  for (int vector = static_cast<int>(thread.index()); vector < kTileKeys * kVectors;
       vector += kConfig.threads()) {
    const int key = tile * kTileKeys + vector / kVectors;
    if (key <= last_key && !clean) continue;
    unsigned short* const at =
        values + attention::stage_at<kPipeline>(vector / kVectors, vector % kVectors * 8);
    bool finite = true;
    BROACH_ROLLED
    for (int i = 0; i < 8; ++i) {
      if (key <= last_key && is_finite_half<kConfig.dtype>(at[i])) continue;
      at[i] = 0;
      finite = key > last_key;
    }
    if (finite) continue;
    BROACH_ROLLED
    for (int row = 0; row < kConfig.rows; ++row) {
      if (shared.keys[row].holds(key)) shared.redo[row] = 1;
    }
  }
  async_proxy_fence();
  sync_consumers();
}

#endif

}  // namespace broach::window_rows
