// Kernels whose launch limits differ in one thing each. The limits tests compile them and hold what
// they read from the binary against the compiler's own report.

template <class T, int kCount>
__device__ __forceinline__ void many_live(T* p) {
  T a[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) a[i] = p[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    T sum = a[j];
#pragma unroll
    for (int i = 0; i < kCount; i += 37) sum = sum * a[i] + a[(i + j) % kCount];
    p[(j * 3) * 1024 + threadIdx.x] = sum;
  }
}

extern "C" __global__ void plain(float* p) { p[threadIdx.x] *= 2; }

extern "C" __global__ void __launch_bounds__(96) bounds96(float* p) { p[threadIdx.x] *= 2; }

extern "C" __global__ void __launch_bounds__(256, 3) bounds256_dynamic(float* p) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = dynamic[255 - threadIdx.x];
}

extern "C" __global__ void shared4000(float* p) {
  __shared__ float s[1000];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = s[255 - threadIdx.x];
}

extern "C" __global__ void stack400(float* p, int n) {
  float a[100];
  for (int i = 0; i < n; ++i) a[i % 100] = p[i];
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += a[(i * 7) % 100];
  p[threadIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(1024) spill4(float* p) { many_live<float, 150>(p); }

extern "C" __global__ void __launch_bounds__(1024) spill8(double* p) { many_live<double, 80>(p); }

extern "C" __global__ void __launch_bounds__(1024) spill_and_stack(float* p, int n) {
  float b[50];
  for (int i = 0; i < 50; ++i) b[i] = p[i * n];
  many_live<float, 90>(p);
  p[0] = b[n];
}

extern "C" __global__ void many_registers(float* p) { many_live<float, 200>(p); }

#if defined(__CUDACC__)
extern "C" __global__ void barriers6(float* p) {
  asm volatile("bar.sync 1, 64;");
  p[0] = 1;
  asm volatile("bar.sync 5, 64;");
  p[1] = 2;
}

extern "C" __global__ void __launch_bounds__(1024) spill_to_shared(float* p) {
  asm volatile(".pragma \"enable_smem_spilling\";");
  many_live<float, 90>(p);
}

__constant__ float table[77];
extern "C" __global__ void constants308(float* p, int i) { p[i] = table[i]; }
#endif

// Not inlined: what it saves on entry is on no list of the ELF.
__device__ __noinline__ float twice_into_itself(float x, int n) {
  return n <= 0 ? x : twice_into_itself(x * 1.5f, n - 1) + twice_into_itself(x, n - 2);
}
extern "C" __global__ void recursion(float* p, int n) {
  p[threadIdx.x] = twice_into_itself(p[0], n);
}
