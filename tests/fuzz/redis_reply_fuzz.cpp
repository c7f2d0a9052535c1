#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "cache/remote/printable.hpp"
#include "cache/remote/redis_reply.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using namespace broach;
using cache::remote::Reply;
using cache::remote::ReplyReader;

// What a reader makes of a reply that comes in pieces of so many bytes.
Result<std::optional<Reply>> read(std::string_view bytes, std::size_t piece) {
  auto reader = ReplyReader::make();
  if (!reader) return reader.error();
  while (!bytes.empty()) {
    const auto now = bytes.substr(0, piece);
    bytes.remove_prefix(now.size());
    auto reply = reader->take(now);
    // A connection asks for nothing more once it has its reply, or cannot have one.
    if (!reply || reply->has_value()) return reply;
  }
  return std::optional<Reply>{};
}

}  // namespace

// The first byte says how long the pieces are in which the others come.
BROACH_FUZZ_TARGET(redis_reply) {
  if (size < 2) return 0;
  const std::string_view bytes = fuzz::as_text(data + 1, size - 1);
  const auto whole = read(bytes, bytes.size());
  const auto pieces = read(bytes, std::size_t{data[0]} + 1);
  // Pieces change nothing but whether what follows a reply has come already.
  if (whole && (!pieces || *pieces != *whole)) std::abort();
  if (whole && whole->has_value() &&
      !cache::remote::is_printable(cache::remote::printable((*whole)->text))) {
    std::abort();
  }
  return 0;
}
