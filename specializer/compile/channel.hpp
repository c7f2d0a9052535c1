#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "specializer/compile/protocol.hpp"
#include "specializer/compile/unique_fd.hpp"

namespace broach::specializer::rtc {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// Frames over a connected stream socket; never raises SIGPIPE.
///
/// Threads: one at a time.
/// Owns:    the socket.
class Channel {
 public:
  explicit Channel(UniqueFd socket) noexcept : socket_(std::move(socket)) {}

  /// Errors:  kTimedOut; kCompilerDied (reason kClosed) when the other side is gone; kLimitExceeded
  /// as
  ///          encode.
  Result<void> send(const Message& message, Deadline deadline);

  /// Errors:  kTimedOut; kCompilerDied when the other side is gone; kDamaged on what is no frame.
  Result<Message> receive(Deadline deadline);

  int fd() const noexcept { return socket_.get(); }

  /// Ends the connection, from whichever thread: who waits for the other side finds it gone.
  void hang_up() const noexcept;

 private:
  Result<void> read_exactly(char* out, std::size_t bytes, Deadline deadline);
  Result<void> wait(short events, Deadline deadline) const;

  UniqueFd socket_;
};

}  // namespace broach::specializer::rtc
