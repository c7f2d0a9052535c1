#pragma once

// The epilogue of a band from registers to global memory, where every one of them divides like any
// other: the reciprocal of l once a row, two fused corrections an element, whole 16-byte vectors to
// write.
//
// The quotient has the bits of IEEE division (Markstein: a quotient within an ulp, corrected by
// r = RN(1 / l) and an exact remainder, is correctly rounded; the first correction brings it within
// one): remainders are exact while |o| is at least 2^-100 and l between 1/2 and 2^30. Outputs up to
// 2^14 are finite in either type.

#include "common/load.cuh"
#include "window_rows/prefill_band.cuh"
#include "window_rows/prefill_rows.cuh"

namespace broach::window_rows {

BROACH_DEVICE float corrected_quotient(float o, float l, float reciprocal) {
  const float q = mul_rn(o, reciprocal);
  const float nearer = fma_rn(fma_rn(-q, l, o), reciprocal, q);
  return fma_rn(fma_rn(-nearer, l, o), reciprocal, nearer);
}

/// Swaps words within four lanes, so that lane i of them holds word i of each, in lane order.
BROACH_DEVICE void transpose_quad(Thread thread, unsigned (&words)[4]) {
  BROACH_UNROLL
  for (int step = 1; step < 4; step *= 2) {
    const bool upper = (thread.lane() & static_cast<unsigned>(step)) != 0;
    BROACH_UNROLL
    for (int i = 0; i < 4; ++i) {
      if ((i & step) != 0) continue;
      const unsigned sent = upper ? words[i] : words[i + step];
      const unsigned got = shuffle_xor(thread, sent, static_cast<unsigned>(step));
      if (upper) {
        words[i] = got;
      } else {
        words[i + step] = got;
      }
    }
  }
}

/// Writes a band's outputs, or nothing: then it returns false in every lane of the warp, and
/// write_band has to. `rows.sum` takes the sinks in either case.
BROACH_DEVICE bool store_band(Thread thread, const Params& p, const PrefillTask& task,
                              const BandRows& rows, const BandOutputs& outputs) {
  const int lane = static_cast<int>(thread.lane());
  float sums[2];
  float sink_rescales[2] = {1.0f, 1.0f};
  bool regular = true;
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    float maximum = rows.maximum[r];
    sums[r] = rows.sum[r];
    if constexpr (kAddsSink) {
      sink_rescales[r] =
          attention::add_sink<kSoftmax>(maximum, p.attention.sinks[task.head], sums[r]);
    }
    if (band_of(thread) * 16 + lane / 4 + 8 * r >= task.rows) continue;
    unsigned least = 0x7fffffffu;
    unsigned most = 0;
    BROACH_UNROLL
    for (int chunk = 0; chunk < kStagesOfK * kChunks; ++chunk) {
      BROACH_UNROLL
      for (int i = 0; i < kChunkBlocks * 2; ++i) {
        const float o = outputs.o[chunk / kChunks][chunk % kChunks][i / 2][2 * r + i % 2];
        const unsigned magnitude =
            bits_of(kAddsSink ? mul_rn(o, sink_rescales[r]) : o) & 0x7fffffffu;
        least = magnitude < least ? magnitude : least;
        most = magnitude > most ? magnitude : most;
      }
    }
    const unsigned l = bits_of(sums[r]);
    regular = regular && least >= 0x0d800000u && most <= 0x46800000u && l >= 0x3f000000u &&
              l <= 0x4e800000u;
  }
  // A planted fault of the rounding is write_band's.
  if constexpr (kConfig.has(Control::kOutputTowardZero)) return false;
  if (ballot(thread, !regular) != 0) return false;

  unsigned short* const out = elements(p.attention.out) +
                              task.first_row * p.attention.out_row_stride +
                              task.head * p.attention.out_head_stride;
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = band_of(thread) * 16 + lane / 4 + 8 * r;
    const float reciprocal = div_rn(1.0f, sums[r]);
    BROACH_UNROLL
    for (int group = 0; group < kStagesOfK * kChunks * kChunkBlocks / 4; ++group) {
      unsigned words[4];
      BROACH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int block = group * 4 + i;
        const float(&o)[4] = outputs.o[block / kChunkBlocks / kChunks]
                                      [block / kChunkBlocks % kChunks][block % kChunkBlocks];
        const float first = kAddsSink ? mul_rn(o[2 * r], sink_rescales[r]) : o[2 * r];
        const float second = kAddsSink ? mul_rn(o[2 * r + 1], sink_rescales[r]) : o[2 * r + 1];
        words[i] = narrow_pair<kConfig.dtype>(corrected_quotient(first, sums[r], reciprocal),
                                              corrected_quotient(second, sums[r], reciprocal));
      }
      transpose_quad(thread, words);
      if (row < task.rows) {
        share8(out + row * p.attention.out_row_stride + group * 32 + lane % 4 * 8,
               Halves8{{words[0], words[1], words[2], words[3]}});
      }
    }
  }
  return true;
}

}  // namespace broach::window_rows
