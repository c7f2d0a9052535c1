#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Defines what one fuzz target does with an input: BROACH_FUZZ_TARGET(name) { ... data, size ... }
///
/// Under libFuzzer (the `fuzz` preset) each target is a program of its own. Elsewhere all of them
/// are functions of `fuzz_replay`, which any compiler builds and the tests run.
///
/// A target that finds a broken promise calls abort; what it returns is always 0.
#ifdef BROACH_LIBFUZZER
#define BROACH_FUZZ_TARGET(name) \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define BROACH_FUZZ_TARGET(name) int broach_fuzz_##name(const std::uint8_t* data, std::size_t size)
#endif

namespace broach::fuzz {

inline std::span<const std::byte> as_bytes(const std::uint8_t* data, std::size_t size) noexcept {
  return {reinterpret_cast<const std::byte*>(data), size};
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace broach::fuzz
