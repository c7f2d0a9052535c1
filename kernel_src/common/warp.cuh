#pragma once

// Exchanges between the 32 lanes of a warp. Every lane must take part. On the host each exchange is
// one rendezvous, however many steps it stands for: WarpMeeting below is the way to write one.

#include "common/ops.cuh"
#include "common/platform.cuh"

namespace broach {

#if defined(BROACH_HOST)
/// Runs `Combine::apply(Lane* const lanes[], unsigned count)` once over the lanes of a warp.
///
/// Lane is any struct on the caller's stack: what it brings, and what it takes away.
template <class Combine, class Lane>
inline void meet_warp(Thread thread, Lane& lane) {
  struct Erased {
    static void apply(void* const* lanes, unsigned count) {
      Lane* typed[kWarpLanes] = {};
      for (unsigned i = 0; i < count; ++i) typed[i] = static_cast<Lane*>(lanes[i]);
      Combine::apply(typed, count);
    }
  };
  thread.host->calls->meet(thread.host, kWarpLanes, &lane, &Erased::apply);
}

template <class T>
struct ShuffleLane {
  T value;
  T result;
  unsigned source;
};

struct Shuffle {
  template <class T>
  static void apply(ShuffleLane<T>* const* lanes, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      lanes[i]->result = lanes[lanes[i]->source % count]->value;
    }
  }
};
#endif

/// Waits for the warp's lanes; their writes to shared memory are seen by all of them afterwards.
BROACH_DEVICE void sync_warp([[maybe_unused]] Thread thread) {
#if defined(BROACH_HOST)
  thread.host->calls->meet(thread.host, kWarpLanes, nullptr, nullptr);
#elif defined(BROACH_CUDA)
  __syncwarp();
#else
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
  __builtin_amdgcn_wave_barrier();
#endif
}

/// The value that lane `source` holds. T: float, double, int, unsigned.
template <class T>
BROACH_DEVICE T shuffle([[maybe_unused]] Thread thread, T value, unsigned source) {
#if defined(BROACH_HOST)
  ShuffleLane<T> lane{value, value, source};
  meet_warp<Shuffle>(thread, lane);
  return lane.result;
#elif defined(BROACH_CUDA)
  return __shfl_sync(0xffffffffu, value, static_cast<int>(source));
#else
  return __shfl(value, static_cast<int>(source), static_cast<int>(kWarpLanes));
#endif
}

/// The value that lane `lane ^ mask` holds. T: float, double, int, unsigned.
template <class T>
BROACH_DEVICE T shuffle_xor([[maybe_unused]] Thread thread, T value, unsigned mask) {
#if defined(BROACH_HOST)
  return shuffle(thread, value, thread.lane() ^ mask);
#elif defined(BROACH_CUDA)
  return __shfl_xor_sync(0xffffffffu, value, static_cast<int>(mask));
#else
  return __shfl_xor(value, static_cast<int>(mask), static_cast<int>(kWarpLanes));
#endif
}

#if defined(BROACH_HOST)
struct BallotLane {
  bool predicate;
  unsigned result;
};

struct Ballot {
  static void apply(BallotLane* const* lanes, unsigned count) {
    unsigned votes = 0;
    for (unsigned i = 0; i < count; ++i) votes |= lanes[i]->predicate ? 1u << i : 0u;
    for (unsigned i = 0; i < count; ++i) lanes[i]->result = votes;
  }
};
#endif

/// Bit i says what lane i's predicate is.
BROACH_DEVICE unsigned ballot([[maybe_unused]] Thread thread, bool predicate) {
#if defined(BROACH_HOST)
  BallotLane lane{predicate, 0};
  meet_warp<Ballot>(thread, lane);
  return lane.result;
#elif defined(BROACH_CUDA)
  return __ballot_sync(0xffffffffu, predicate);
#else
  // A 64-wide wave holds two warps: bits 32 to 63 are the odd one's.
  const unsigned long long votes = __ballot(predicate);
  return static_cast<unsigned>(__lane_id() < kWarpLanes ? votes : votes >> kWarpLanes);
#endif
}

BROACH_DEVICE bool any(Thread thread, bool predicate) { return ballot(thread, predicate) != 0; }

BROACH_DEVICE bool all(Thread thread, bool predicate) {
  return ballot(thread, predicate) == 0xffffffffu;
}

#if defined(BROACH_HOST)
template <unsigned kGroup>
struct SumTree {
  template <class Lane>
  static void apply(Lane* const* lanes, unsigned count) {
    constexpr unsigned kBatch = Lane::kBatch;
    for (unsigned group = 0; group < count; group += kGroup) {
      for (unsigned b = 0; b < kBatch; ++b) {
        float sum[kGroup];
        for (unsigned i = 0; i < kGroup; ++i) sum[i] = lanes[group + i]->part[b];
        // Both lanes of a pair hold the same sum, so half of the tree tells every lane's result.
        for (unsigned mask = kGroup / 2; mask > 0; mask /= 2) {
          for (unsigned i = 0; i < mask; ++i) sum[i] = add_rn(sum[i], sum[i + mask]);
        }
        constexpr unsigned kHolders = kGroup / kBatch;
        for (unsigned i = 0; i < kHolders; ++i) {
          lanes[group + b * kHolders + i]->result = sum[0];
        }
      }
    }
  }
};

template <unsigned kBatchSize>
struct SumTreeLane {
  static constexpr unsigned kBatch = kBatchSize;
  const float* part;
  float result;
};
#endif

/// Sums kBatch values over each group of kGroup lanes by a xor tree, masks kGroup/2 down to 1.
///
/// Shapes:  kGroup and kBatch powers of two, kBatch <= kGroup <= 32. A lane gets the sum of value
///          (lane % kGroup) / (kGroup / kBatch): a lane gives away the half of its values that it
///          does not need at each of the first log2(kBatch) masks. x + y = y + x, so the bits are
///          those of kBatch whole trees. What `part` holds afterwards is not stated.
template <unsigned kGroup, unsigned kBatch>
BROACH_DEVICE float sum_tree(Thread thread, float (&part)[kBatch]) {
  static_assert(kBatch <= kGroup && kGroup <= kWarpLanes, "a value needs a lane to land in");
#if defined(BROACH_HOST)
  SumTreeLane<kBatch> lane{part, 0.0f};
  meet_warp<SumTree<kGroup>>(thread, lane);
  return lane.result;
#else
  const unsigned lane = thread.lane();
  unsigned mask = kGroup / 2;
  BROACH_UNROLL
  for (unsigned half = kBatch / 2; half > 0; half /= 2) {
    const bool upper = (lane & mask) != 0;
    BROACH_UNROLL
    for (unsigned i = 0; i < half; ++i) {
      const float keep = upper ? part[i + half] : part[i];
      const float give = upper ? part[i] : part[i + half];
      part[i] = add_rn(keep, shuffle_xor(thread, give, mask));
    }
    mask /= 2;
  }
  float sum = part[0];
  BROACH_UNROLL
  for (; mask > 0; mask /= 2) sum = add_rn(sum, shuffle_xor(thread, sum, mask));
  return sum;
#endif
}

/// The larger of two numbers; of a number and a NaN, the number. Which zero of two is no promise.
BROACH_DEVICE float larger(float a, float b) {
#if defined(BROACH_CUDA)
  return fmaxf(a, b);
#else
  return a >= b || b != b ? a : b;
#endif
}

#if defined(BROACH_HOST)
struct MaxLane {
  float value;
  float result;
};

struct Max {
  static void apply(MaxLane* const* lanes, unsigned count) {
    float most = lanes[0]->value;
    for (unsigned i = 1; i < count; ++i) most = larger(most, lanes[i]->value);
    for (unsigned i = 0; i < count; ++i) lanes[i]->result = most;
  }
};
#endif

/// The largest of the lanes' values, NaNs left out where there is a number.
BROACH_DEVICE float max_warp([[maybe_unused]] Thread thread, float value) {
#if defined(BROACH_HOST)
  MaxLane lane{value, value};
  meet_warp<Max>(thread, lane);
  return lane.result;
#else
  BROACH_UNROLL
  for (unsigned mask = kWarpLanes / 2; mask > 0; mask /= 2) {
    value = larger(value, shuffle_xor(thread, value, mask));
  }
  return value;
#endif
}

}  // namespace broach
