#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "broach/result.hpp"

struct redisReader;

namespace broach::cache::remote {

/// One reply of Redis.
struct Reply {
  enum class Kind : std::uint8_t { kStatus, kError, kInteger, kText, kNil };
  Kind kind = Kind::kNil;
  std::string text;
  std::int64_t number = 0;

  bool operator==(const Reply&) const = default;
};

/// Puts a reply together from the pieces that a connection brings. hiredis reads the protocol; what
/// no command here is answered with, what would make it reserve memory on a peer's word, and a line
/// that does not end, are turned down.
///
/// Threads: one at a time.
class ReplyReader {
 public:
  /// Errors:  kOutOfMemory.
  static Result<ReplyReader> make();

  /// Takes the next bytes, at least one; absent while more are to come.
  ///
  /// Errors:  kUnsupported with "protocol" or "too_long"; the reader is of no use after one.
  Result<std::optional<Reply>> take(std::string_view bytes);

 private:
  struct FreeReader {
    void operator()(redisReader* reader) const noexcept;
  };

  explicit ReplyReader(redisReader* reader) : reader_(reader) {}

  std::unique_ptr<redisReader, FreeReader> reader_;
  std::uint64_t fed_bytes_ = 0;  ///< Of the reply that is being read.
  bool line_ended_ = false;      ///< Its first line is whole.
};

}  // namespace broach::cache::remote
