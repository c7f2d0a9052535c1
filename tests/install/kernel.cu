// A kernel of one's own, compiled against the installed headers alone.
#include "broach/kernel.cuh"

struct ScaleParams {
  float* x;
  float by;
};

BROACH_KERNEL_OF(acme_scale, broach::block(32, 8).dynamic_shared(65536), ScaleParams,
                 broach::NoShared) {
  params.x[thread.block_x() * 256 + thread.index()] *= params.by;
}
