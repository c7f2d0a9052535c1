#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "broach/result.hpp"

namespace broach::cache {

/// Compresses objects one by one, each into a zstd frame that states its content's size. The same
/// bytes give the same frame, as far as the zstd library is the same.
///
/// Errors:  kOutOfMemory.
/// Threads: one compressor per thread.
class FrameCompressor {
 public:
  FrameCompressor();
  ~FrameCompressor();

  Result<std::vector<std::byte>> compress(std::span<const std::byte> object);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// Decompresses a whole frame that must come to exactly this many bytes, and checks so before
/// and while it does; memory is taken for that many and no more.
///
/// Errors:  kDamaged with what did not fit; kOutOfMemory.
Result<std::vector<std::byte>> decompress(std::span<const std::byte> frame,
                                          std::uint64_t object_bytes);

/// Decompresses the first `count` bytes of such a frame.
///
/// Errors:  as decompress.
Result<std::vector<std::byte>> decompress_front(std::span<const std::byte> frame,
                                                std::uint64_t object_bytes, std::size_t count);

}  // namespace broach::cache
