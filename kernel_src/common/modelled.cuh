#pragma once

// BROACH_STEPS, for loops over what some chips have an instruction for and AMD's compute as a model
// of hundreds: unrolled, and rolled where each turn would repeat the model. There the arrays that
// the loop indexes are no longer registers by name; a compiler keeps them in vectors or in scratch.

#include "common/platform.cuh"

#if defined(BROACH_HIP)
#define BROACH_STEPS BROACH_ROLLED
#else
#define BROACH_STEPS BROACH_UNROLL
#endif
