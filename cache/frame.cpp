#include "cache/frame.hpp"

#include <zstd.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace broach::cache {
namespace {

// Bundles are made once and read often; higher levels take several times as long for a few percent.
constexpr int kLevel = 15;

// Frames of objects need no larger window; a frame that asks for one asks for memory.
constexpr int kMaxWindowLog = 27;

Error damaged(std::string what) { return Error{ErrorCode::kDamaged, std::move(what), ""}; }

Error no_memory() { return Error{ErrorCode::kOutOfMemory, "no memory for zstd", ""}; }

// What the frame says of itself must be what the index says.
Result<void> check_frame(std::span<const std::byte> frame, std::uint64_t object_bytes) {
  const unsigned long long content = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (content == ZSTD_CONTENTSIZE_ERROR) return damaged("it is no zstd frame");
  if (content == ZSTD_CONTENTSIZE_UNKNOWN || content != object_bytes) {
    return damaged(
        fmt::format("its frame does not state the {} bytes that the index claims", object_bytes));
  }
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    return damaged("its frame ends elsewhere than the index claims");
  }
  return {};
}

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const noexcept { ZSTD_freeDStream(stream); }
};

}  // namespace

struct FrameCompressor::Context {
  Context() = default;
  ~Context() { ZSTD_freeCCtx(handle); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ZSTD_CCtx* handle = ZSTD_createCCtx();
};

FrameCompressor::FrameCompressor() : context_(std::make_unique<Context>()) {}
FrameCompressor::~FrameCompressor() = default;

Result<std::vector<std::byte>> FrameCompressor::compress(std::span<const std::byte> object) {
  if (context_->handle == nullptr) return no_memory();
  std::vector<std::byte> frame(ZSTD_compressBound(object.size()));
  const std::size_t size = ZSTD_compressCCtx(context_->handle, frame.data(), frame.size(),
                                             object.data(), object.size(), kLevel);
  if (ZSTD_isError(size) != 0) {
    return Error{
        ErrorCode::kInternal,
        fmt::format("zstd cannot compress {} bytes: {}", object.size(), ZSTD_getErrorName(size)),
        ""};
  }
  frame.resize(size);
  return frame;
}

Result<std::vector<std::byte>> decompress(std::span<const std::byte> frame,
                                          std::uint64_t object_bytes) {
  if (auto fine = check_frame(frame, object_bytes); !fine) return fine.error();
  std::vector<std::byte> object(static_cast<std::size_t>(object_bytes));
  const std::size_t size =
      ZSTD_decompress(object.data(), object.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0) {
    return damaged(fmt::format("it does not decompress: {}", ZSTD_getErrorName(size)));
  }
  if (size != object_bytes) {
    return damaged(
        fmt::format("it decompresses to {} bytes; the index claims {}", size, object_bytes));
  }
  return object;
}

Result<std::vector<std::byte>> decompress_front(std::span<const std::byte> frame,
                                                std::uint64_t object_bytes, std::size_t count) {
  if (auto fine = check_frame(frame, object_bytes); !fine) return fine.error();
  if (count > object_bytes) return damaged("it is shorter than its front");
  const std::unique_ptr<ZSTD_DStream, FreeStream> stream(ZSTD_createDStream());
  if (stream == nullptr) return no_memory();
  (void)ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  std::vector<std::byte> front(count);
  ZSTD_inBuffer in{frame.data(), frame.size(), 0};
  ZSTD_outBuffer out{front.data(), front.size(), 0};
  while (out.pos < out.size) {
    const std::size_t before = in.pos + out.pos;
    const std::size_t left = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(left) != 0) {
      return damaged(fmt::format("it does not decompress: {}", ZSTD_getErrorName(left)));
    }
    if (out.pos < out.size && (left == 0 || in.pos + out.pos == before)) {
      return damaged(
          fmt::format("it decompresses to {} bytes; the index claims {}", out.pos, object_bytes));
    }
  }
  return front;
}

}  // namespace broach::cache
