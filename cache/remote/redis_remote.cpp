#include "cache/remote/redis_remote.hpp"

#include <array>

#include <fmt/core.h>

#include "cache/remote/printable.hpp"

namespace broach::cache::remote {
namespace {

// Compare and set, compare and delete: the text begins with the token of whoever holds the lease.
constexpr std::string_view kRenew =
    "local held = redis.call('GET', KEYS[1]) "
    "if not held or string.sub(held, 1, #ARGV[1]) ~= ARGV[1] then return 0 end "
    "redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1";
constexpr std::string_view kRelease =
    "local held = redis.call('GET', KEYS[1]) "
    "if not held or string.sub(held, 1, #ARGV[1]) ~= ARGV[1] then return 0 end "
    "return redis.call('DEL', KEYS[1])";

std::string object_name(const Key& key) { return "broach:1:object:" + key.hex(); }
std::string lease_name(const Key& key) { return "broach:1:lease:" + key.hex(); }

Error refused(const Reply& reply, std::string_view command, const std::string& peer) {
  const bool denied = reply.text.starts_with("NOAUTH") || reply.text.starts_with("WRONGPASS") ||
                      reply.text.starts_with("NOPERM");
  const std::string said = reply.kind == Reply::Kind::kError
                               ? printable(reply.text)
                               : "a reply that this command does not have";
  return {denied ? ErrorCode::kDenied : ErrorCode::kIo,
          fmt::format("{} answers {} with {}", peer, command, said),
          denied ? "denied" : "server_error"};
}

}  // namespace

Result<Reply> RedisRemote::ask(std::span<const std::string_view> words, Deadline& deadline) {
  if (std::optional<RedisStream> waiting = idle_.take()) {
    auto reply = waiting->ask(words, deadline);
    if (reply) {
      idle_.put_back(std::move(*waiting));
      return reply;
    }
    // Redis closes connections that wait long: that is no fault of the peer.
    if (!waiting->went_stale() || reply.error().reason != Reason::kClosed) return reply;
  }
  auto fresh = RedisStream::connect(curl_, access_, deadline);
  if (!fresh) return fresh.error();
  auto reply = fresh->ask(words, deadline);
  if (reply) idle_.put_back(std::move(*fresh));
  return reply;
}

Result<std::optional<std::string>> RedisRemote::get(const KeyRecord& key, Deadline& deadline) {
  const std::string name = object_name(key.key);
  auto reply = ask(std::array<std::string_view, 2>{"GET", name}, deadline);
  if (!reply) return reply.error();
  if (reply->kind == Reply::Kind::kNil) return std::optional<std::string>{};
  if (reply->kind != Reply::Kind::kText) return refused(*reply, "GET", this->name());
  return std::optional<std::string>(std::move(reply->text));
}

Result<void> RedisRemote::put(const KeyRecord& key, std::string_view value, Deadline& deadline) {
  const std::string name = object_name(key.key);
  const auto reply = ask(std::array<std::string_view, 3>{"SET", name, value}, deadline);
  if (!reply) return reply.error();
  if (reply->kind != Reply::Kind::kStatus) return refused(*reply, "SET", this->name());
  return {};
}

Result<bool> RedisRemote::has(const KeyRecord& key, Deadline& deadline) {
  const std::string name = object_name(key.key);
  const auto reply = ask(std::array<std::string_view, 2>{"EXISTS", name}, deadline);
  if (!reply) return reply.error();
  if (reply->kind != Reply::Kind::kInteger) return refused(*reply, "EXISTS", this->name());
  return reply->number > 0;
}

Result<LeaseBoard::Answer> RedisRemote::take(const Key& key, std::string_view text,
                                             std::chrono::milliseconds time, Deadline& deadline) {
  const std::string name = lease_name(key);
  const std::string ms = fmt::format("{}", time.count());
  const auto reply =
      ask(std::array<std::string_view, 6>{"SET", name, text, "NX", "PX", ms}, deadline);
  if (!reply) return reply.error();
  if (reply->kind == Reply::Kind::kStatus) return Answer{true, ""};
  if (reply->kind != Reply::Kind::kNil) return refused(*reply, "SET NX", this->name());
  const auto held = ask(std::array<std::string_view, 2>{"GET", name}, deadline);
  if (!held) return held.error();
  // Nil: it was given up meanwhile, and the next question takes it.
  return Answer{false, held->text};
}

Result<bool> RedisRemote::renew(const Key& key, std::string_view token, std::string_view text,
                                std::chrono::milliseconds time, Deadline& deadline) {
  const std::string name = lease_name(key);
  const std::string ms = fmt::format("{}", time.count());
  const auto reply =
      ask(std::array<std::string_view, 7>{"EVAL", kRenew, "1", name, token, text, ms}, deadline);
  if (!reply) return reply.error();
  if (reply->kind != Reply::Kind::kInteger) return refused(*reply, "EVAL", this->name());
  return reply->number == 1;
}

Result<bool> RedisRemote::release(const Key& key, std::string_view token, Deadline& deadline) {
  const std::string name = lease_name(key);
  const auto reply =
      ask(std::array<std::string_view, 5>{"EVAL", kRelease, "1", name, token}, deadline);
  if (!reply) return reply.error();
  if (reply->kind != Reply::Kind::kInteger) return refused(*reply, "EVAL", this->name());
  return reply->number == 1;
}

}  // namespace broach::cache::remote
