// Small kernels whose binaries are kept beside this file, for machines without their compilers:
//   limits_sm_90a.cubin       ptxas 13.0 (ELF ABI 8)
//   limits_sm_90a_abi7.cubin  ptxas 12.4 (ELF ABI 7), of the PTX that nvcc 13.0 makes
//   limits_gfx90a.co          hiprtc 5.2, --offload-arch=gfx90a
//   limits_gfx1030.co         hiprtc 5.2, --offload-arch=gfx1030
#if defined(__CUDACC__)
#define FEW_REGISTERS __maxnreg__(32)
#else
#define FEW_REGISTERS __attribute__((amdgpu_num_vgpr(24)))
#endif

extern "C" __global__ void __launch_bounds__(96) bounds96(float* p) { p[threadIdx.x] *= 2; }

extern "C" __global__ void shared4000(float* p) {
  __shared__ float s[1000];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = s[255 - threadIdx.x];
}

extern "C" __global__ void stack400(float* p, int n) {
  float a[100];
#pragma unroll 1
  for (int i = 0; i < n; ++i) a[i % 100] = p[i];
  p[threadIdx.x] = a[n];
}

extern "C" __global__ void FEW_REGISTERS spill(float* p, int n) {
  float a[40];
#pragma unroll
  for (int i = 0; i < 40; ++i) a[i] = p[i * n + threadIdx.x];
#pragma unroll 1
  for (int k = 0; k < n; ++k) {
#pragma unroll
    for (int i = 0; i < 40; ++i) a[i] = a[i] * a[(i * 3 + 1) % 40] + p[k];
  }
#pragma unroll
  for (int i = 0; i < 40; ++i) p[i * n + threadIdx.x] = a[i];
}
