#pragma once

#include <cstddef>
#include <cstdint>

/// What the stand-in for libcuda.so.1 is told to do and what it has seen. It keeps a context stack
/// a thread as the driver does, and answers errors on request.
///
/// Threads: one.
struct FakeCuda {
  // Told.
  int init_status = 0;
  int device_count = 1;
  int compute_major = 9;
  int compute_minor = 0;
  int load_status = 0;
  const char* load_log = "";
  int capture_answer = 0;  ///< CUstreamCaptureStatus
  int capture_status = 0;
  int launch_status = 0;
  int static_shared = 1024;
  bool second_argument = false;  ///< Whether launches have a second argument, a double.

  // Seen.
  int retained = 0;
  int released = 0;
  int loads = 0;
  int unloads = 0;
  int mode_exchanges = 0;
  int capture_mode = 0;
  int capture_mode_at_load = -1;
  int dynamic_shared_allowed = 0;         ///< By function attribute.
  int kernel_dynamic_shared_allowed = 0;  ///< By kernel attribute.
  int launches = 0;
  std::uintptr_t launched_function = 0;
  std::uintptr_t launched_in_context = 0;
  std::uintptr_t launched_on_stream = 0;
  unsigned launched_grid[3] = {0, 0, 0};
  unsigned launched_threads = 0;  ///< Along x.
  unsigned launched_block_y = 0;
  unsigned launched_block_z = 0;
  unsigned launched_dynamic_shared = 0;
  int launched_first_int = 0;         ///< Of the parameter struct, or of the first argument.
  double launched_second_double = 0;  ///< Of the second argument, when told to read one.
  int extended_launches = 0;
  unsigned launched_cluster[3] = {0, 0, 0};
  int launched_cooperative = 0;
  int launched_overlap = 0;
  int unknown_attributes = 0;
  int large_clusters_allowed = 0;         ///< By function attribute, how often.
  int kernel_large_clusters_allowed = 0;  ///< By kernel attribute, how often.
  std::uintptr_t copied_to = 0;
  std::size_t copied_bytes = 0;
  unsigned char copied_first = 0;
  std::uintptr_t copied_on_stream = 0;
};

inline constexpr std::uintptr_t kFakePrimary = 0x1000;
inline constexpr std::uintptr_t kFakeFunction = 0x2000;
inline constexpr std::uintptr_t kFakeKernel = 0x3000;
inline constexpr std::uintptr_t kFakeVariable = 0x4000;
inline constexpr std::size_t kFakeVariableBytes = 48;
/// Contexts from here on are an engine's own, of device `context - kFakeEngineContext`.
inline constexpr std::uintptr_t kFakeEngineContext = 0x9000;
