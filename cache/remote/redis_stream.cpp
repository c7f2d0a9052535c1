#include "cache/remote/redis_stream.hpp"

#include <hiredis/hiredis.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <vector>

#include <fmt/core.h>

#include "cache/remote/printable.hpp"

namespace broach::cache::remote {
namespace {

Result<std::string> format(std::span<const std::string_view> words) {
  std::vector<const char*> pointers;
  std::vector<std::size_t> lengths;
  for (const std::string_view word : words) {
    pointers.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* bytes = nullptr;
  const int length = redisFormatCommandArgv(&bytes, static_cast<int>(words.size()), pointers.data(),
                                            lengths.data());
  if (length < 0) return Error{ErrorCode::kOutOfMemory, "no memory for a Redis command", "memory"};
  std::string command(bytes, static_cast<std::size_t>(length));
  redisFreeCommand(bytes);
  return command;
}

}  // namespace

Result<RedisStream> RedisStream::connect(const Curl& curl, const Access& access,
                                         Deadline& deadline) {
  auto handle = CurlHandle::make(curl);
  if (!handle) return handle.error();
  handle->reset(access);
  const std::string url = origin_of(access.address);
  handle->set(CURLOPT_URL, url.c_str());
  handle->set(CURLOPT_CONNECT_ONLY, 1L);
  handle->set(CURLOPT_SSL_ENABLE_ALPN, 0L);  // The stream is not HTTP.
  if (auto connected = handle->perform(deadline, access.address.name); !connected) {
    return connected.error();
  }
  auto reader = ReplyReader::make();
  if (!reader) return reader.error();
  RedisStream stream(std::move(*handle), std::move(*reader), access.address.name);
  if (auto in = stream.sign_in(access, deadline); !in) return in.error();
  return stream;
}

Result<void> RedisStream::sign_in(const Access& access, Deadline& deadline) {
  const Address& address = access.address;
  const std::string& password = access.secret.empty() ? address.password : access.secret;
  if (!password.empty()) {
    std::vector<std::string_view> words{"AUTH"};
    if (!address.user.empty()) words.push_back(address.user);
    words.push_back(password);
    if (auto in = demand_ok(words, deadline); !in) return in;
  }
  if (address.database == 0) return {};
  const std::string number = fmt::format("{}", address.database);
  return demand_ok(std::array<std::string_view, 2>{"SELECT", number}, deadline);
}

Result<void> RedisStream::demand_ok(std::span<const std::string_view> words, Deadline& deadline) {
  const auto reply = ask(words, deadline);
  if (!reply) return reply.error();
  if (reply->kind != Reply::Kind::kError) return {};
  return Error{ErrorCode::kDenied,
               fmt::format("{} refuses {}: {}", peer_, words.front(), printable(reply->text)),
               "denied"};
}

Result<Reply> RedisStream::ask(std::span<const std::string_view> words, Deadline& deadline) {
  const auto command = format(words);
  if (!command) return command.error();
  stale_ = true;  // Until a reply begins.
  if (auto sent = send(*command, deadline); !sent) return sent.error();
  std::array<char, 16 * 1024> bytes;
  for (;;) {
    const auto count = receive(bytes, deadline);
    if (!count) return count.error();
    stale_ = false;
    auto reply = reader_.take(std::string_view(bytes.data(), *count));
    if (!reply) {
      return Error{reply.error().code, fmt::format("{} {}", peer_, reply.error().message),
                   reply.error().detail, reply.error().reason};
    }
    if (reply->has_value()) return std::move(**reply);
    // A peer that never lets this wait is bound by the clock all the same.
    if (deadline.passed()) return gave_up(deadline, peer_);
    // Only a reply of many parts makes progress: signing in shares the time to the first byte.
    deadline.progress();
  }
}

Result<void> RedisStream::send(std::string_view bytes, Deadline& deadline) {
  while (!bytes.empty()) {
    std::size_t sent = 0;
    const CURLcode code =
        handle_.curl().easy_send(handle_.easy(), bytes.data(), bytes.size(), &sent);
    if (code == CURLE_AGAIN) {
      if (auto ready = wait(POLLOUT, deadline); !ready) return ready;
      continue;
    }
    if (code != CURLE_OK) return closed();
    bytes.remove_prefix(sent);
    // What the kernel took of a large value is progress; a small command is gone at once.
    if (bytes.empty()) return {};
    if (deadline.passed()) return gave_up(deadline, peer_);
    deadline.progress();
  }
  return {};
}

Result<std::size_t> RedisStream::receive(std::span<char> into, Deadline& deadline) {
  for (;;) {
    std::size_t received = 0;
    const CURLcode code =
        handle_.curl().easy_recv(handle_.easy(), into.data(), into.size(), &received);
    if (code == CURLE_OK && received > 0) return received;
    if (code != CURLE_AGAIN) return closed();
    if (auto ready = wait(POLLIN, deadline); !ready) return ready.error();
  }
}

Result<void> RedisStream::wait(short events, Deadline& deadline) const {
  for (;;) {
    if (deadline.passed()) return gave_up(deadline, peer_);
    pollfd waited{handle_.socket(), events, 0};
    const int ready = poll(&waited, 1, static_cast<int>(deadline.nap().count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return closed();
  }
}

Error RedisStream::closed() const {
  return {ErrorCode::kIo, peer_ + " closed the connection", "closed", Reason::kClosed};
}

}  // namespace broach::cache::remote
