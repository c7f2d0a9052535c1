#include "tests/cache/remote/rogue_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace broach::cache::remote::test {
namespace {

// How late the end of the server is seen.
constexpr std::chrono::milliseconds kLook{10};

}  // namespace

bool RogueConnection::ready(short events) const {
  while (!ending_) {
    pollfd waited{socket_.get(), events, 0};
    const int count = poll(&waited, 1, static_cast<int>(kLook.count()));
    if (count < 0 || (waited.revents & (POLLERR | POLLNVAL)) != 0) return false;
    if ((waited.revents & events) != 0) return true;
    if ((waited.revents & POLLHUP) != 0) return false;
  }
  return false;
}

bool RogueConnection::hear() {
  std::array<char, 4096> bytes{};
  return ready(POLLIN) && recv(socket_.get(), bytes.data(), bytes.size(), 0) > 0;
}

bool RogueConnection::say(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!ready(POLLOUT)) return false;
    const ssize_t sent =
        send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RogueConnection::wait(std::chrono::milliseconds time) const {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!ending_ && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::min(time, kLook));
  }
  return !ending_;
}

void RogueConnection::flood(std::string_view bytes) {
  while (say(bytes)) {
  }
}

bool RogueConnection::drip(std::string_view bytes, std::chrono::milliseconds pause) {
  for (const char byte : bytes) {
    if (!wait(pause) || !say(std::string_view(&byte, 1))) return false;
  }
  return true;
}

void RogueConnection::stall() const {
  while (!ending_) {
    pollfd waited{socket_.get(), 0, 0};
    if (poll(&waited, 1, static_cast<int>(kLook.count())) != 0) return;
  }
}

void RogueConnection::half_close() const { (void)shutdown(socket_.get(), SHUT_WR); }

void RogueConnection::reset() {
  const linger at_once{1, 0};
  (void)setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_.reset();
}

RogueServer::RogueServer(Script script)
    : script_(std::move(script)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_.get(), 16) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("no socket to listen at");
  }
  port_ = ntohs(address.sin_port);
  listening_ = std::thread([this] { serve(); });
}

RogueServer::~RogueServer() {
  ending_ = true;
  listening_.join();
  for (std::thread& connection : connections_) connection.join();
}

std::string RogueServer::url(const std::string& scheme, const std::string& path) const {
  return scheme + "://127.0.0.1:" + std::to_string(port_) + path;
}

void RogueServer::serve() {
  while (!ending_) {
    pollfd waited{listener_.get(), POLLIN, 0};
    if (poll(&waited, 1, static_cast<int>(kLook.count())) <= 0) continue;
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) continue;
    connections_.emplace_back([this, held = std::move(socket)]() mutable {
      RogueConnection connection(std::move(held), ending_);
      script_(connection);
    });
  }
}

}  // namespace broach::cache::remote::test
