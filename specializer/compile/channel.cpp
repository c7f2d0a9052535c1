#include "specializer/compile/channel.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace broach::specializer::rtc {
namespace {

// A frame's body grows as its bytes arrive, so that a false length costs no memory.
constexpr std::size_t kStepBytes = std::size_t{1} << 20;

Error gone() {
  return Error{ErrorCode::kCompilerDied, "the other side hung up", "", Reason::kClosed};
}

Error broken(const char* call) {
  if (errno == EPIPE || errno == ECONNRESET) return gone();
  return Error{ErrorCode::kIo, std::string(call) + ": " + std::strerror(errno), ""};
}

}  // namespace

void Channel::hang_up() const noexcept { ::shutdown(socket_.get(), SHUT_RDWR); }

Result<void> Channel::wait(short events, Deadline deadline) const {
  for (;;) {
    int timeout_ms = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          *deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return Error{ErrorCode::kTimedOut, "the time limit passed", ""};
      timeout_ms = static_cast<int>(std::min<std::int64_t>(left.count(), 60'000));
    }
    pollfd entry{socket_.get(), events, 0};
    const int ready = ::poll(&entry, 1, timeout_ms);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return broken("poll");
  }
}

Result<void> Channel::send(const Message& message, Deadline deadline) {
  auto frame = encode(message);
  if (!frame) return std::move(frame).error();
  std::string_view left = *frame;
  while (!left.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      left.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (auto ready = wait(POLLOUT, deadline); !ready) return ready;
    } else if (errno != EINTR) {
      return broken("send");
    }
  }
  return {};
}

Result<void> Channel::read_exactly(char* out, std::size_t bytes, Deadline deadline) {
  while (bytes > 0) {
    const ssize_t got = ::recv(socket_.get(), out, bytes, MSG_DONTWAIT);
    if (got > 0) {
      out += got;
      bytes -= static_cast<std::size_t>(got);
    } else if (got == 0) {
      return gone();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (auto ready = wait(POLLIN, deadline); !ready) return ready;
    } else if (errno != EINTR) {
      return broken("recv");
    }
  }
  return {};
}

Result<Message> Channel::receive(Deadline deadline) {
  char header[kHeaderBytes];
  if (auto read = read_exactly(header, sizeof header, deadline); !read) return read.error();
  const auto length = body_bytes(std::string_view(header, sizeof header));
  if (!length) return length.error();
  std::string body;
  while (body.size() < *length) {
    const std::size_t start = body.size();
    const std::size_t step = std::min(*length - start, kStepBytes);
    body.resize(start + step);
    if (auto read = read_exactly(body.data() + start, step, deadline); !read) return read.error();
  }
  return decode(body);
}

}  // namespace broach::specializer::rtc
