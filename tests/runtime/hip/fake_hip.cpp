// A stand-in for libamdhip64: the entry points that the runtime opens, with HIP's own signatures,
// over a FakeHip that a test reads. Built twice: as a run time with cooperative launches, and
// (FAKE_WITHOUT_COOPERATIVE) as one from before them.
#include "tests/runtime/hip/fake_hip.hpp"

#include <cstring>
#include <string_view>

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace {

FakeHip fake;

int seen(unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
         unsigned block_z, unsigned shared, void* stream, void** params) {
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  std::memcpy(fake.grid, grid, sizeof grid);
  std::memcpy(fake.block, block, sizeof block);
  fake.dynamic_shared_bytes = shared;
  fake.stream = reinterpret_cast<std::uintptr_t>(stream);
  std::memcpy(&fake.first_argument, params[0], sizeof fake.first_argument);
  if (shared != 0) std::memcpy(&fake.second_argument, params[1], sizeof fake.second_argument);
  return 0;
}

}  // namespace

FAKE_API FakeHip* fake_hip() { return &fake; }

FAKE_API int hipInit(unsigned) { return 0; }
FAKE_API int hipDriverGetVersion(int* version) {
  *version = 60241134;
  return 0;
}
FAKE_API const char* hipGetErrorName(int) { return "hipErrorOther"; }
FAKE_API const char* hipGetErrorString(int) { return "fake words"; }
FAKE_API int hipGetDeviceCount(int* count) {
  *count = 1;
  return 0;
}
FAKE_API int hipDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake MI250X", static_cast<std::size_t>(bytes));
  return 0;
}
FAKE_API int hipGetDeviceProperties(void* properties, int) {
  std::memcpy(static_cast<char*>(properties) + 396, "gfx90a:sramecc+:xnack-", 23);
  return 0;
}
FAKE_API int hipGetDevice(int* device) {
  *device = 0;
  return 0;
}
FAKE_API int hipSetDevice(int) { return 0; }
FAKE_API int hipModuleLoadData(void** module, const void*) {
  *module = &fake;
  return 0;
}
FAKE_API int hipModuleUnload(void*) { return 0; }
FAKE_API int hipModuleGetFunction(void** function, void*, const char*) {
  *function = &fake;
  return 0;
}
FAKE_API int hipFuncGetAttribute(int* value, int attribute, void*) {
  *value = 10 * attribute;
  return 0;
}
FAKE_API int hipModuleLaunchKernel(void*, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared, void* stream, void** params, void**) {
  ++fake.launches;
  return seen(grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, params);
}
#ifndef FAKE_WITHOUT_COOPERATIVE
FAKE_API int hipModuleLaunchCooperativeKernel(void*, unsigned grid_x, unsigned grid_y,
                                              unsigned grid_z, unsigned block_x, unsigned block_y,
                                              unsigned block_z, unsigned shared, void* stream,
                                              void** params) {
  ++fake.cooperative_launches;
  return seen(grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, params);
}
#endif
FAKE_API int hipModuleGetGlobal(void** memory, std::size_t* bytes, void*, const char* name) {
  if (std::string_view(name) == "absent") return 500;
  *memory = reinterpret_cast<void*>(kFakeHipVariable);
  *bytes = kFakeHipVariableBytes;
  return 0;
}
FAKE_API int hipStreamIsCapturing(void*, int* status) {
  *status = 0;
  return 0;
}
FAKE_API int hipStreamSynchronize(void*) { return 0; }
FAKE_API int hipMalloc(void** memory, std::size_t) {
  *memory = &fake;
  return 0;
}
FAKE_API int hipFree(void*) { return 0; }
FAKE_API int hipMemcpyHtoD(void*, const void*, std::size_t) { return 0; }
FAKE_API int hipMemcpyDtoH(void*, const void*, std::size_t) { return 0; }
FAKE_API int hipMemcpyHtoDAsync(void* to, const void*, std::size_t bytes, void* stream) {
  fake.copied_to = reinterpret_cast<std::uintptr_t>(to);
  fake.copied_bytes = bytes;
  fake.copied_on_stream = reinterpret_cast<std::uintptr_t>(stream);
  return 0;
}
