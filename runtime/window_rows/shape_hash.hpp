#pragma once

#include <cstdint>

#include "broach/types.hpp"

namespace broach::runtime {

/// Spreads a 64-bit word over all its bits (the finalizer of SplitMix64).
constexpr std::uint64_t mixed(std::uint64_t word) noexcept {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9U;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebU;
  return word ^ (word >> 31);
}

/// A hash of every field of a shape; equal shapes have equal hashes, in this process only.
constexpr std::uint64_t hash_of(const WindowRowsShape& shape) noexcept {
  const auto word = [](auto value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t sizes = word(shape.head_dim) << 32 | word(shape.gqa_ratio);
  const std::uint64_t lengths = word(shape.window) << 32 | word(shape.kv_layout.length);
  const std::uint64_t choices = word(shape.kv_layout.kind) << 56 | word(shape.dtype) << 48 |
                                word(shape.form) << 40 | word(shape.arith) << 32 |
                                word(shape.p32) << 24 | word(shape.softcap) << 16 |
                                word(shape.sinks) << 8 | word(shape.checked);
  return mixed(sizes ^ mixed(lengths ^ mixed(choices)));
}

}  // namespace broach::runtime
