#pragma once

#include "broach/kernel.cuh"

// The 16-bit type that the shape names.
constexpr broach::Half kHalf = kDtype == kDtype_bf16 ? broach::Half::kBf16 : broach::Half::kF16;
