#pragma once

// window_rows decode, arith=chunk256: two kernels, over a workspace of partials.

#include "window_rows/chunk256_combine.cuh"
#include "window_rows/chunk256_partial.cuh"
