#include "cache/remote/redis_reply.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "cache/remote/remote.hpp"

namespace broach::cache::remote {
namespace {

// What a value's reply has besides the value.
constexpr std::uint64_t kReplyHeadBytes = 64;

// The first line of a reply: a length, a number, or what Redis has to say of an error. The reader
// looks for its end from its beginning each time, so that an endless one would cost ever more.
constexpr std::uint64_t kMaxLineBytes = 16 * 1024;

// The kinds that the commands sent here are answered with. An array makes the reader reserve what
// the peer says, so that it is turned down before the reader sees it.
bool may_begin_reply(char first) {
  return first == '+' || first == '-' || first == ':' || first == '$';
}

Error broken(std::string what) {
  return Error{ErrorCode::kUnsupported, std::move(what), "protocol"};
}

Reply to_reply(const redisReply& raw) {
  const auto text = [&] { return raw.str == nullptr ? "" : std::string(raw.str, raw.len); };
  switch (raw.type) {
    case REDIS_REPLY_STATUS:
      return {Reply::Kind::kStatus, text(), 0};
    case REDIS_REPLY_ERROR:
      return {Reply::Kind::kError, text(), 0};
    case REDIS_REPLY_INTEGER:
      return {Reply::Kind::kInteger, "", raw.integer};
    case REDIS_REPLY_STRING:
      return {Reply::Kind::kText, text(), 0};
    default:
      return {};
  }
}

}  // namespace

void ReplyReader::FreeReader::operator()(redisReader* reader) const noexcept {
  redisReaderFree(reader);
}

Result<ReplyReader> ReplyReader::make() {
  redisReader* reader = redisReaderCreate();
  if (reader != nullptr) return ReplyReader(reader);
  return Error{ErrorCode::kOutOfMemory, "no memory for a Redis connection", "memory"};
}

Result<std::optional<Reply>> ReplyReader::take(std::string_view bytes) {
  if (fed_bytes_ == 0 && !may_begin_reply(bytes.front())) {
    return broken("does not answer as Redis does");
  }
  if (!line_ended_) {
    const std::size_t end = bytes.find('\n');
    line_ended_ = end != std::string_view::npos;
    if (fed_bytes_ + std::min(end, bytes.size()) > kMaxLineBytes) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("sends a line of more than {} bytes", kMaxLineBytes), "too_long"};
    }
  }
  fed_bytes_ += bytes.size();
  if (fed_bytes_ > kMaxValueBytes + kReplyHeadBytes) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("sends a value of more than {} bytes", kMaxValueBytes), "too_long"};
  }
  void* raw = nullptr;
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK ||
      redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
    return broken(fmt::format("breaks Redis's protocol: {}", reader_->errstr));
  }
  if (raw == nullptr) return std::optional<Reply>{};
  const std::unique_ptr<void, decltype(&freeReplyObject)> reply(raw, &freeReplyObject);
  if (reader_->pos != reader_->len) return broken("sends more than was asked for");
  fed_bytes_ = 0;
  line_ended_ = false;
  return std::optional<Reply>(to_reply(*static_cast<const redisReply*>(raw)));
}

}  // namespace broach::cache::remote
