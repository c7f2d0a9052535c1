#pragma once

#include <cstddef>
#include <cstdint>

/// What the stand-in for libamdhip64 has seen.
///
/// Threads: one.
struct FakeHip {
  int launches = 0;
  int cooperative_launches = 0;
  unsigned grid[3] = {0, 0, 0};
  unsigned block[3] = {0, 0, 0};
  unsigned dynamic_shared_bytes = 0;
  std::uintptr_t stream = 0;
  int first_argument = 0;
  double second_argument = 0;  ///< Read where the launch has dynamic shared memory.
  std::uintptr_t copied_to = 0;
  std::size_t copied_bytes = 0;
  std::uintptr_t copied_on_stream = 0;
};

inline constexpr std::uintptr_t kFakeHipVariable = 0x4000;
inline constexpr std::size_t kFakeHipVariableBytes = 48;
