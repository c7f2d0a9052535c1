#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "cache/fd.hpp"

namespace broach::cache::remote::test {

/// A server that answers whatever it is asked with the same bytes, right or wrong.
class ScriptedServer {
 public:
  enum class Then : std::uint8_t { kClose, kStall };

  /// Each connection gets `answer` when its first bytes have come. `kStall` leaves it open, silent.
  ScriptedServer(std::string answer, Then then);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url(const std::string& scheme, const std::string& path = "/") const;

 private:
  void serve();

  std::string answer_;
  Then then_;
  Fd listener_;
  Fd ended_;  ///< Its other end is closed when the server is to end.
  Fd end_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace broach::cache::remote::test
