#pragma once

// 16-byte loads of 16-bit values.

#include "common/half.cuh"
#include "common/platform.cuh"

namespace broach {

/// Eight 16-bit values as they lie in memory: value 2i is the low half of word i.
struct alignas(16) Halves8 {
  unsigned words[4];
};

/// Reads eight values that the kernel never writes.
///
/// Shapes:  `at` 16-byte aligned.
BROACH_DEVICE Halves8 load8(const unsigned short* at) {
#if defined(BROACH_CUDA)
  const uint4 v = __ldg(reinterpret_cast<const uint4*>(at));
  return Halves8{{v.x, v.y, v.z, v.w}};
#elif defined(BROACH_HIP)
  typedef unsigned Words __attribute__((ext_vector_type(4)));
  const Words v = *reinterpret_cast<const Words*>(at);
  return Halves8{{v.x, v.y, v.z, v.w}};
#else
  Halves8 halves;
  __builtin_memcpy(&halves, at, sizeof(halves));
  return halves;
#endif
}

/// Reads eight values from shared memory; leaves eight there, or in global memory.
///
/// Shapes:  `at` 16-byte aligned.
BROACH_DEVICE Halves8 shared8(const unsigned short* at) {
#if defined(BROACH_CUDA)
  const uint4 v = *reinterpret_cast<const uint4*>(at);
  return Halves8{{v.x, v.y, v.z, v.w}};
#else
  Halves8 halves;
  __builtin_memcpy(&halves, at, sizeof(halves));
  return halves;
#endif
}

BROACH_DEVICE void share8(unsigned short* at, const Halves8& halves) {
#if defined(BROACH_CUDA)
  *reinterpret_cast<uint4*>(at) =
      make_uint4(halves.words[0], halves.words[1], halves.words[2], halves.words[3]);
#else
  __builtin_memcpy(at, &halves, sizeof(halves));
#endif
}

/// Value `i` of eight, exactly.
template <Half kHalf>
BROACH_DEVICE float widen(const Halves8& halves, unsigned i) {
  const unsigned word = halves.words[i / 2];
  if constexpr (kHalf == Half::kBf16) {
    return float_of(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
  } else {
    return widen<kHalf>(static_cast<unsigned short>(i % 2 == 0 ? word & 0xffffu : word >> 16));
  }
}

}  // namespace broach
