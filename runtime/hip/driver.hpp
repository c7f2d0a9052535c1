#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "broach/result.hpp"

namespace broach::runtime::hip {

// The part of HIP's C interface that is used here, declared by hand so that the library builds
// where there is no ROCm. The ABI rests on what AMD keeps across libamdhip64.so.5, 6 and 7: errors
// and enumerators are C ints, handles and device pointers are pointers. The one structure that
// changed between them, hipDeviceProp_t, is not declared: see arch_in.

using Status = int;
using StreamHandle = struct StreamTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;

inline constexpr Status kSuccess = 0;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kInvalidDevice = 101;  ///< What ROCm 5 says where there is no device.
inline constexpr Status kNotFoundStatus = 500;
inline constexpr Status kCaptureImplicit = 906;

enum class FunctionAttribute : int {
  kMaxThreads = 0,
  kStaticShared = 1,
  kConstantBytes = 2,
  kLocalBytes = 3,
  kRegisters = 4,
};

enum class CaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };

/// The HIP run time, opened at run time. It stays open until the process ends.
///
/// Threads: any.
struct Driver {
  Status (*init)(unsigned flags);
  Status (*driver_get_version)(int* version);
  const char* (*get_error_name)(Status status);
  const char* (*get_error_string)(Status status);
  Status (*get_device_count)(int* count);
  Status (*device_get_name)(char* name, int bytes, int device);
  Status (*get_device_properties)(void* properties, int device);
  Status (*get_device)(int* device);
  Status (*set_device)(int device);
  Status (*module_load)(ModuleHandle* module, const void* image);
  Status (*module_unload)(ModuleHandle module);
  Status (*module_get_function)(FunctionHandle* function, ModuleHandle module, const char* name);
  Status (*function_get_attribute)(int* value, FunctionAttribute attribute,
                                   FunctionHandle function);
  Status (*launch_kernel)(FunctionHandle function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned dynamic_shared_bytes, StreamHandle stream, void** params,
                          void** extra);
  Status (*stream_is_capturing)(StreamHandle stream, CaptureStatus* status);
  Status (*stream_synchronize)(StreamHandle stream);
  Status (*memory_allocate)(void** memory, std::size_t bytes);
  Status (*memory_free)(void* memory);
  Status (*copy_to_device)(void* to, const void* from, std::size_t bytes);
  Status (*copy_to_host)(void* to, const void* from, std::size_t bytes);
  Status (*copy_to_device_async)(void* to, const void* from, std::size_t bytes,
                                 StreamHandle stream);
  Status (*module_get_global)(void** memory, std::size_t* bytes, ModuleHandle module,
                              const char* name);

  // Since ROCm 5.5; null before.
  Status (*launch_cooperative)(FunctionHandle function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned dynamic_shared_bytes, StreamHandle stream,
                               void** params);

  std::string words(Status status) const;

  /// Opens `library`, or libamdhip64.so.7, .6, .5 by the loader's search and then in /opt/rocm/lib.
  ///
  /// Errors:  kNotFound with what was tried; kDriver naming the entry point that is missing.
  static Result<std::shared_ptr<const Driver>> open(const std::string& library = {});
};

/// An error of a HIP call, in words: what was done to which object, and HIP's own.
Error driver_error(const Driver& driver, Status status, std::string_view doing);

/// The architecture's name with its features ("gfx90a:sramecc+:xnack-") out of a hipDeviceProp_t of
/// whatever version: the last text in it that is such a name, empty if there is none.
std::string arch_in(std::span<const char> properties);

}  // namespace broach::runtime::hip
