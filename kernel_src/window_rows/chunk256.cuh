#pragma once

// window_rows decode by the arithmetic `chunk256` (docs/numerics.md):
//
//   out[row, head, d] = sum_j p_j v_j[d] / (sum_j p_j + p_sink)      p_j = exp(s_j - max)
//   s_j = scale q[row, head] . k_j, softcapped where the shape says so
//
// q, k, v, out: 16 bits; everything between them fp32, each operation explicit.
// Launches: broach_window_rows_part leaves a partial a (row, query head, chunk of 256 keys at an
// absolute position); broach_window_rows_merge folds a row's partials in chunk order.
// Chips: any. The bits of a row depend on its own query and keys only, and are every chip's.
//
// The including source defines, in namespace broach::chunk256 after chunk256_base.cuh: kHeadDim,
// kGqaRatio, kWindow, kLayout, kLayoutLength, kDtype, kSoftcap, kSinks, kChecked, kGeneric,
// kControl.

#include "window_rows/chunk256_merge.cuh"
#include "window_rows/chunk256_part.cuh"
