#pragma once

// The tensors of broach/attention.h as the kernels read them: 16-bit elements, bf16 or f16.

#include "broach/attention.h"
#include "common/platform.cuh"

namespace broach {

/// A tensor's elements.
BROACH_DEVICE const unsigned short* elements(const void* tensor) {
  return static_cast<const unsigned short*>(tensor);
}
BROACH_DEVICE unsigned short* elements(void* tensor) {
  return static_cast<unsigned short*>(tensor);
}

}  // namespace broach
