// A stand-in for libcuda.so.1: the entry points that the runtime opens, with the driver's own
// signatures, over a FakeCuda that a test reads and writes. Built twice: as a driver of CUDA 12 and
// later, and (FAKE_WITHOUT_LIBRARIES) as one from before cuLibraryLoadData.
#include "tests/runtime/cuda/fake_driver.hpp"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace {

FakeCuda fake;
thread_local std::vector<std::uintptr_t> contexts;

std::uintptr_t current() { return contexts.empty() ? 0 : contexts.back(); }

int device_of(std::uintptr_t context) {
  return context >= kFakeEngineContext ? static_cast<int>(context - kFakeEngineContext) : 0;
}

constexpr int kInvalidContext = 201;
constexpr int kNotFound = 500;

int need_context() { return current() == 0 ? kInvalidContext : 0; }

int load(const int* names, void** values, unsigned options) {
  ++fake.loads;
  fake.capture_mode_at_load = fake.capture_mode;
  char* log = nullptr;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < options; ++i) {
    if (names[i] == 5) log = static_cast<char*>(values[i]);
    if (names[i] == 6) bytes = reinterpret_cast<std::size_t>(values[i]);
  }
  if (log != nullptr && bytes > 0) std::strncpy(log, fake.load_log, bytes - 1);
  return fake.load_status;
}

}  // namespace

FAKE_API FakeCuda* fake_cuda() { return &fake; }

FAKE_API int cuInit(unsigned) { return fake.init_status; }
FAKE_API int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
FAKE_API int cuGetErrorName(int status, const char** name) {
  *name = status == 3     ? "CUDA_ERROR_NOT_INITIALIZED"
          : status == 200 ? "CUDA_ERROR_INVALID_IMAGE"
          : status == 500 ? "CUDA_ERROR_NOT_FOUND"
                          : "CUDA_ERROR_OTHER";
  return 0;
}
FAKE_API int cuGetErrorString(int, const char** text) {
  *text = "fake words";
  return 0;
}
FAKE_API int cuDeviceGetCount(int* count) {
  *count = fake.device_count;
  return 0;
}
FAKE_API int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
FAKE_API int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(bytes));
  return 0;
}
FAKE_API int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? fake.compute_major : attribute == 76 ? fake.compute_minor : 232448;
  return 0;
}
FAKE_API int cuDevicePrimaryCtxRetain(void** context, int device) {
  ++fake.retained;
  *context = reinterpret_cast<void*>(kFakePrimary + static_cast<std::uintptr_t>(device));
  return 0;
}
FAKE_API int cuDevicePrimaryCtxRelease_v2(int) {
  ++fake.released;
  return 0;
}
FAKE_API int cuCtxGetCurrent(void** context) {
  *context = reinterpret_cast<void*>(current());
  return fake.init_status;
}
FAKE_API int cuCtxGetDevice(int* device) {
  *device = device_of(current());
  return need_context();
}
FAKE_API int cuCtxPushCurrent_v2(void* context) {
  contexts.push_back(reinterpret_cast<std::uintptr_t>(context));
  return 0;
}
FAKE_API int cuCtxPopCurrent_v2(void** context) {
  if (const int status = need_context(); status != 0) return status;
  *context = reinterpret_cast<void*>(current());
  contexts.pop_back();
  return 0;
}
FAKE_API int cuCtxSynchronize() { return need_context(); }
FAKE_API int cuModuleLoadDataEx(void** module, const void*, unsigned options, int* names,
                                void** values) {
  if (const int status = need_context(); status != 0) return status;
  *module = &fake;
  return load(names, values, options);
}
FAKE_API int cuModuleUnload(void*) {
  ++fake.unloads;
  return need_context();
}
FAKE_API int cuModuleGetFunction(void** function, void*, const char* name) {
  if (std::string_view(name) == "absent") return kNotFound;
  *function = reinterpret_cast<void*>(kFakeFunction);
  return need_context();
}
FAKE_API int cuFuncGetAttribute(int* value, int attribute, void*) {
  *value = attribute == 1   ? fake.static_shared
           : attribute == 8 ? fake.dynamic_shared_allowed
                            : 10 * attribute;
  return need_context();
}
FAKE_API int cuFuncSetAttribute(void*, int attribute, int value) {
  if (attribute == 8) fake.dynamic_shared_allowed = value;
  if (attribute == 13) fake.large_clusters_allowed += value;
  return need_context();
}
FAKE_API int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                            void* stream, void** params, void**) {
  if (const int status = need_context(); status != 0) return status;
  ++fake.launches;
  fake.launched_function = reinterpret_cast<std::uintptr_t>(function);
  fake.launched_in_context = current();
  fake.launched_on_stream = reinterpret_cast<std::uintptr_t>(stream);
  fake.launched_grid[0] = grid_x;
  fake.launched_grid[1] = grid_y;
  fake.launched_grid[2] = grid_z;
  fake.launched_threads = block_x;
  fake.launched_block_y = block_y;
  fake.launched_block_z = block_z;
  fake.launched_dynamic_shared = shared;
  if (params != nullptr) std::memcpy(&fake.launched_first_int, params[0], sizeof(int));
  if (fake.second_argument) {
    std::memcpy(&fake.launched_second_double, params[1], sizeof(double));
  }
  return fake.launch_status;
}
FAKE_API int cuModuleGetGlobal_v2(unsigned long long* memory, std::size_t* bytes, void*,
                                  const char* name) {
  if (std::string_view(name) == "absent") return kNotFound;
  *memory = kFakeVariable;
  *bytes = kFakeVariableBytes;
  return need_context();
}
FAKE_API int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes,
                                  void* stream) {
  fake.copied_to = to;
  fake.copied_bytes = bytes;
  std::memcpy(&fake.copied_first, from, 1);
  fake.copied_on_stream = reinterpret_cast<std::uintptr_t>(stream);
  return need_context();
}
FAKE_API int cuStreamIsCapturing(void*, int* status) {
  *status = fake.capture_answer;
  return fake.capture_status;
}
FAKE_API int cuStreamSynchronize(void*) { return need_context(); }
FAKE_API int cuThreadExchangeStreamCaptureMode(int* mode) {
  ++fake.mode_exchanges;
  std::swap(*mode, fake.capture_mode);
  return 0;
}
FAKE_API int cuMemAlloc_v2(unsigned long long* memory, std::size_t bytes) {
  if (bytes > std::size_t{1} << 40) return 2;
  *memory = 0xd000;
  return need_context();
}
FAKE_API int cuMemFree_v2(unsigned long long) { return need_context(); }
FAKE_API int cuMemcpyHtoD_v2(unsigned long long, const void*, std::size_t) {
  return need_context();
}
FAKE_API int cuMemcpyDtoH_v2(void*, unsigned long long, std::size_t) { return need_context(); }

#ifndef FAKE_WITHOUT_LIBRARIES
FAKE_API int cuLibraryLoadData(void** library, const void*, int* names, void** values,
                               unsigned options, int*, void**, unsigned) {
  *library = &fake;
  return load(names, values, options);
}
FAKE_API int cuLibraryUnload(void*) {
  ++fake.unloads;
  return 0;
}
FAKE_API int cuLibraryGetKernel(void** kernel, void*, const char* name) {
  if (std::string_view(name) == "absent") return kNotFound;
  *kernel = reinterpret_cast<void*>(kFakeKernel);
  return 0;
}
FAKE_API int cuKernelGetFunction(void** function, void*) {
  *function = reinterpret_cast<void*>(kFakeFunction);
  return need_context();
}
FAKE_API int cuKernelSetAttribute(int attribute, int value, void*, int) {
  if (attribute == 8) fake.kernel_dynamic_shared_allowed = value;
  if (attribute == 13) fake.kernel_large_clusters_allowed += value;
  return 0;
}
FAKE_API int cuLibraryGetGlobal(unsigned long long* memory, std::size_t* bytes, void* library,
                                const char* name) {
  return cuModuleGetGlobal_v2(memory, bytes, library, name);
}

namespace {

// cuda.h's CUlaunchAttribute and CUlaunchConfig, spelt byte by byte.
struct FakeAttribute {
  int id;
  char pad[4];
  unsigned char value[64];
};
struct FakeLaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
  void* stream;
  const FakeAttribute* attributes;
  unsigned attribute_count;
};

}  // namespace

FAKE_API int cuLaunchKernelEx(const FakeLaunchConfig* config, void* function, void** params,
                              void** extra) {
  ++fake.extended_launches;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const FakeAttribute& attribute = config->attributes[i];
    switch (attribute.id) {
      case 2:
        std::memcpy(&fake.launched_cooperative, attribute.value, sizeof(int));
        break;
      case 4:
        std::memcpy(fake.launched_cluster, attribute.value, sizeof fake.launched_cluster);
        break;
      case 6:
        std::memcpy(&fake.launched_overlap, attribute.value, sizeof(int));
        break;
      default:
        ++fake.unknown_attributes;
    }
  }
  return cuLaunchKernel(function, config->grid_x, config->grid_y, config->grid_z, config->block_x,
                        config->block_y, config->block_z, config->shared, config->stream, params,
                        extra);
}
#endif
