#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cache/fd.hpp"

namespace broach::cache::remote::test {

/// One connection that a rogue server has, as its script sees it. Each call returns false once the
/// peer has gone or the server ends.
class RogueConnection {
 public:
  RogueConnection(Fd socket, const std::atomic<bool>& ending)
      : socket_(std::move(socket)), ending_(ending) {}

  /// Waits for the peer's first bytes, and takes what is there.
  bool hear();
  bool say(std::string_view bytes);
  bool wait(std::chrono::milliseconds time) const;

  /// Says the same again and again until the peer goes.
  void flood(std::string_view bytes);

  /// A byte at a time, with a pause before each.
  bool drip(std::string_view bytes, std::chrono::milliseconds pause);

  /// Keeps the connection open and says nothing more.
  void stall() const;

  /// Says that nothing more comes, and goes on listening.
  void half_close() const;

  /// Ends the connection as a crash does, with a reset.
  void reset();

 private:
  bool ready(short events) const;

  Fd socket_;
  const std::atomic<bool>& ending_;
};

/// A server on loopback that runs a script on each connection, whatever it is asked.
class RogueServer {
 public:
  using Script = std::function<void(RogueConnection&)>;

  explicit RogueServer(Script script);
  ~RogueServer();
  RogueServer(const RogueServer&) = delete;
  RogueServer& operator=(const RogueServer&) = delete;

  std::string url(const std::string& scheme, const std::string& path = "/") const;

 private:
  void serve();

  Script script_;
  Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> ending_{false};
  std::thread listening_;
  std::vector<std::thread> connections_;  ///< Of the listening thread, until it has ended.
};

}  // namespace broach::cache::remote::test
