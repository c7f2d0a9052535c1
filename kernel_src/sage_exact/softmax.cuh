#pragma once

// The online softmax of sage_exact: what one key tile does to a lane's two rows.
//
// Lane l, with g = l / 4 and t = l % 4, holds of row g (half 0) and row g + 8 (half 1) the scores
// of keys 8 j + 2 t and 8 j + 2 t + 1, j = 0 .. 7: scores[j][2 * half + i].
//
//   deq = q_scale k_scale
//   tiles before the last two:  y = fp32(score)        sc = c deq
//   the last two:               y = fp32(score) deq    sc = c; y = -5,000,000 for keys from N on
//   tile maximum of a lane = max(-5,000,000, y ...) sc - 8.807 by one fma; then of its quad
//   m' = max(m, tile maximum)   a = ex2~(m - m')   p = ex2~(y sc - m') by one fma
//   of every 16 keys s = ((p0 + p1) + p2) + p3;    d = d a + s by one fma, then d + s, d + s, d + s

#include "common/modelled.cuh"
#include "common/warp.cuh"
#include "sage_exact/arith.cuh"

namespace broach::sage_exact {

constexpr int kKeyBlocks = kTileKeys / 8;

/// A lane's two rows.
struct Rows {
  float m[2];  ///< Running maximum, in the exponent's units.
  float d[2];  ///< The lane's part of the denominator.
};

BROACH_DEVICE void start_rows(Rows& rows) {
  BROACH_UNROLL
  for (int half = 0; half < 2; ++half) {
    rows.m[half] = masked_score();
    rows.d[half] = 1.0f;
  }
}

/// What the scores of a tile are multiplied by, and where.
struct TileScale {
  float deq;     ///< Applied to the score.
  float sc;      ///< Applied in the exponent.
  bool of_last;  ///< One of the last two tiles: deq rounds first.
};

BROACH_DEVICE TileScale scale_of_tile(float q_scale, float k_scale, int tile, int tiles) {
  constexpr int kLast = kControl == Control::kTailMoved ? 3 : 2;
  TileScale scale;
  scale.deq = mul_ftz(q_scale, k_scale);
  scale.of_last = tile >= tiles - kLast;
  scale.sc = scale.of_last ? score_scale() : mul_ftz(score_scale(), scale.deq);
  return scale;
}

#if defined(BROACH_HOST)
struct QuadMaxLane {
  float value[2];
};

/// Masks 1 and 2 of a xor exchange at once: a maximum is exact in any order.
struct QuadMax {
  static void apply(QuadMaxLane* const* lanes, unsigned count) {
    for (unsigned quad = 0; quad < count; quad += 4) {
      for (int half = 0; half < 2; ++half) {
        float most = lanes[quad]->value[half];
        for (unsigned i = 1; i < 4; ++i) most = max_ftz(most, lanes[quad + i]->value[half]);
        for (unsigned i = 0; i < 4; ++i) lanes[quad + i]->value[half] = most;
      }
    }
  }
};
#endif

/// The largest of a quad's values, of both rows.
BROACH_DEVICE void max_of_quad([[maybe_unused]] Thread thread, float (&value)[2]) {
#if defined(BROACH_HOST)
  QuadMaxLane lane{{value[0], value[1]}};
  meet_warp<QuadMax>(thread, lane);
  value[0] = lane.value[0];
  value[1] = lane.value[1];
#else
  BROACH_UNROLL
  for (unsigned mask = 1; mask < 4; mask *= 2) {
    BROACH_UNROLL
    for (int half = 0; half < 2; ++half) {
      value[half] = max_ftz(value[half], shuffle_xor(thread, value[half], mask));
    }
  }
#endif
}

/// Brings a tile into the rows.
///
/// Shapes:  `p` gets the exponentials where the scores lie in `scores`; `a` the factor of what the
///          rows hold so far. `keys` counts the tile's keys below N.
BROACH_DEVICE void bring_tile(Thread thread, const int (&scores)[kKeyBlocks][4],
                              const TileScale& scale, int keys, Rows& rows,
                              float (&p)[kKeyBlocks][4], float (&a)[2]) {
  const int t = static_cast<int>(thread.lane() % 4);
  float most[2] = {masked_score(), masked_score()};
  BROACH_STEPS
  for (int j = 0; j < kKeyBlocks; ++j) {
    BROACH_UNROLL
    for (int i = 0; i < 4; ++i) {
      float y = static_cast<float>(scores[j][i]);
      if (scale.of_last) {
        y = mul_ftz(y, scale.deq);
        if (kControl != Control::kTailUnmasked && 8 * j + 2 * t + i % 2 >= keys) y = masked_score();
      }
      p[j][i] = y;
      most[i / 2] = max_ftz(most[i / 2], y);
    }
  }
  BROACH_UNROLL
  for (int half = 0; half < 2; ++half) most[half] = fma_ftz(most[half], scale.sc, max_offset());
  max_of_quad(thread, most);
  BROACH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float before = rows.m[half];
    rows.m[half] = max_ftz(before, most[half]);
    a[half] = ex2_approx(sub_ftz(before, rows.m[half]));
    BROACH_STEPS
    for (int j = 0; j < kKeyBlocks; j += 2) {
      float sum = 0.0f;
      BROACH_UNROLL
      for (int i = 0; i < 4; ++i) {
        float& value = p[j + i / 2][2 * half + i % 2];
        value = ex2_approx(fma_ftz(value, scale.sc, -rows.m[half]));
        sum = i == 0 ? value : add_ftz(sum, value);
      }
      if (j > 0) {
        rows.d[half] = add_ftz(rows.d[half], sum);
      } else if constexpr (kControl == Control::kRescaleUnfused) {
        rows.d[half] = add_ftz(mul_ftz(rows.d[half], a[half]), sum);
      } else {
        rows.d[half] = fma_ftz(rows.d[half], a[half], sum);
      }
    }
  }
}

/// The denominators of both rows: the quad's parts, in xor order.
BROACH_DEVICE void sum_of_quad(Thread thread, float (&d)[2]) {
  BROACH_UNROLL
  for (unsigned mask = 1; mask < 4; mask *= 2) {
    BROACH_UNROLL
    for (int half = 0; half < 2; ++half) {
      d[half] = add_ftz(d[half], shuffle_xor(thread, d[half], mask));
    }
  }
}

}  // namespace broach::sage_exact
