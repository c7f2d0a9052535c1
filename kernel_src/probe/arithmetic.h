#pragma once

/* What the arithmetic probe is launched with and what it leaves: see probe/arithmetic.cuh. */

typedef struct BroachProbeValues {
  unsigned long long exp64;
  unsigned long long tanh64;
  unsigned exp32;
  unsigned tanh32;
  unsigned fused;
  unsigned separate;
  unsigned quotient;
  unsigned sum;
  unsigned wide_bf16;
  unsigned wide_f16;
  unsigned sine;
  unsigned cosine;
  unsigned root;
  unsigned inverse_root;
  unsigned short bf16;
  unsigned short f16;
  unsigned short bf16_from_double;
  unsigned short f16_from_double;
} BroachProbeValues;

typedef struct BroachProbe {
  BroachProbeValues* out; /* [count] */
  unsigned first;
  unsigned step;
} BroachProbe;
