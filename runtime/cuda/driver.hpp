#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "broach/result.hpp"

namespace broach::runtime::cuda {

// The part of the CUDA driver's C interface that is used here, declared by hand so that the library
// builds where there is no toolkit. The ABI rests on what NVIDIA keeps stable: results and
// enumerators are C ints, CUdevice is an int, handles are pointers, CUdeviceptr is 64 bits wide,
// and an entry point whose signature changed has a new name (the `_v2` ones below).

using Status = int;
using DeviceOrdinal = int;
using DevicePointer = unsigned long long;
using Context = struct ContextTag*;
using StreamHandle = struct StreamTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using LibraryHandle = struct LibraryTag*;
using KernelHandle = struct KernelTag*;

inline constexpr Status kSuccess = 0;
inline constexpr Status kNotInitialized = 3;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kInvalidImage = 200;
inline constexpr Status kNoBinaryForGpu = 209;
inline constexpr Status kUnsupportedPtxVersion = 222;
inline constexpr Status kInvalidSource = 300;
inline constexpr Status kNotFoundStatus = 500;
inline constexpr Status kCaptureImplicit = 906;

enum class FunctionAttribute : int {
  kMaxThreads = 0,
  kStaticShared = 1,
  kConstantBytes = 2,
  kLocalBytes = 3,
  kRegisters = 4,
  kMaxDynamicShared = 8,
  kLargeClusters = 13,
};

/// cuLaunchKernelEx's attributes and configuration, as cuda.h has them since CUDA 11.8.
enum class LaunchAttributeId : int {
  kCooperative = 2,
  kClusterDims = 4,
  kProgrammaticOverlap = 6,
};

struct LaunchAttribute {
  LaunchAttributeId id;
  int padding;
  union {
    unsigned long long room[8];
    unsigned cluster[3];
    int on;
  };
};
static_assert(sizeof(LaunchAttribute) == 72);

struct ExtendedLaunch {
  unsigned grid[3];
  unsigned block[3];
  unsigned dynamic_shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(ExtendedLaunch) == 56);

enum class DeviceAttribute : int {
  kMultiprocessors = 16,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kSharedPerBlockOptIn = 97,
};

enum class JitOption : int {
  kErrorLogBuffer = 5,
  kErrorLogBufferBytes = 6,
};

enum class CaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };
enum class CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

/// The CUDA driver, opened at run time. The library stays open until the process ends: the driver
/// keeps threads of its own.
///
/// Threads: any.
struct Driver {
  Status (*init)(unsigned flags);
  Status (*driver_get_version)(int* version);
  Status (*get_error_name)(Status status, const char** name);
  Status (*get_error_string)(Status status, const char** text);
  Status (*device_get_count)(int* count);
  Status (*device_get)(DeviceOrdinal* device, int ordinal);
  Status (*device_get_name)(char* name, int bytes, DeviceOrdinal device);
  Status (*device_get_attribute)(int* value, DeviceAttribute attribute, DeviceOrdinal device);
  Status (*primary_retain)(Context* context, DeviceOrdinal device);
  Status (*primary_release)(DeviceOrdinal device);
  Status (*context_get_current)(Context* context);
  Status (*context_get_device)(DeviceOrdinal* device);
  Status (*context_push)(Context context);
  Status (*context_pop)(Context* context);
  Status (*context_synchronize)();
  Status (*module_load)(ModuleHandle* module, const void* image, unsigned options, JitOption* names,
                        void** values);
  Status (*module_unload)(ModuleHandle module);
  Status (*module_get_function)(FunctionHandle* function, ModuleHandle module, const char* name);
  Status (*function_get_attribute)(int* value, FunctionAttribute attribute,
                                   FunctionHandle function);
  Status (*function_set_attribute)(FunctionHandle function, FunctionAttribute attribute, int value);
  Status (*launch_kernel)(FunctionHandle function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned dynamic_shared_bytes, StreamHandle stream, void** params,
                          void** extra);
  Status (*stream_is_capturing)(StreamHandle stream, CaptureStatus* status);
  Status (*stream_synchronize)(StreamHandle stream);
  Status (*exchange_capture_mode)(CaptureMode* mode);
  Status (*memory_allocate)(DevicePointer* memory, std::size_t bytes);
  Status (*memory_free)(DevicePointer memory);
  Status (*copy_to_device)(DevicePointer to, const void* from, std::size_t bytes);
  Status (*copy_to_host)(void* to, DevicePointer from, std::size_t bytes);
  Status (*copy_to_device_async)(DevicePointer to, const void* from, std::size_t bytes,
                                 StreamHandle stream);
  Status (*module_get_global)(DevicePointer* memory, std::size_t* bytes, ModuleHandle module,
                              const char* name);

  // Since CUDA 11.8; null before.
  Status (*launch_kernel_ex)(const ExtendedLaunch* launch, FunctionHandle function, void** params,
                             void** extra);

  // Since CUDA 12.0; null before. A library's kernels belong to the device, not to one context, so
  // they also launch in a context of the engine's own.
  Status (*library_load)(LibraryHandle* library, const void* image, JitOption* jit_names,
                         void** jit_values, unsigned jit_options, int* library_names,
                         void** library_values, unsigned library_options);
  Status (*library_unload)(LibraryHandle library);
  Status (*library_get_kernel)(KernelHandle* kernel, LibraryHandle library, const char* name);
  Status (*library_get_global)(DevicePointer* memory, std::size_t* bytes, LibraryHandle library,
                               const char* name);
  Status (*kernel_get_function)(FunctionHandle* function, KernelHandle kernel);
  Status (*kernel_set_attribute)(FunctionAttribute attribute, int value, KernelHandle kernel,
                                 DeviceOrdinal device);

  // Since CUDA 12.0; null before.
  Status (*tensor_map_encode)(void* map, int type, unsigned rank, void* data,
                              const std::uint64_t* dims, const std::uint64_t* strides,
                              const std::uint32_t* box, const std::uint32_t* element_strides,
                              int interleave, int swizzle, int l2_promotion, int outside);

  bool has_libraries() const noexcept { return kernel_set_attribute != nullptr; }

  /// The driver's name and words for a status: "CUDA_ERROR_INVALID_IMAGE: device kernel image is
  /// invalid".
  std::string words(Status status) const;

  /// Opens `library`, or libcuda.so.1 by the loader's search and then /usr/lib/wsl/lib.
  ///
  /// Errors:  kNotFound with what was tried; kDriver naming the entry point that is missing.
  static Result<std::shared_ptr<const Driver>> open(const std::string& library = {});
};

/// An error of a driver call, in words: what was done to which object, and the driver's own.
Error driver_error(const Driver& driver, Status status, std::string_view doing);

/// The kernel driver's release out of /proc/driver/nvidia/version: "580.159.04", or empty.
std::string driver_release(std::string_view proc_text);

}  // namespace broach::runtime::cuda
