#include "tests/cache/remote/scripted_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

namespace broach::cache::remote::test {

ScriptedServer::ScriptedServer(std::string answer, Then then)
    : answer_(std::move(answer)),
      then_(then),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  std::array<int, 2> ends{};
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_.get(), 16) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no socket to listen at");
  }
  port_ = ntohs(address.sin_port);
  ended_ = Fd(ends[0]);
  end_ = Fd(ends[1]);
  thread_ = std::thread([this] { serve(); });
}

ScriptedServer::~ScriptedServer() {
  end_.reset();
  thread_.join();
}

std::string ScriptedServer::url(const std::string& scheme, const std::string& path) const {
  return scheme + "://127.0.0.1:" + std::to_string(port_) + path;
}

void ScriptedServer::serve() {
  std::vector<Fd> open;
  std::vector<bool> answered;
  for (;;) {
    std::vector<pollfd> waited{{ended_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (std::size_t i = 0; i < open.size(); ++i) {
      // An open connection that has its answer is only watched for its end.
      waited.push_back({open[i].get(), static_cast<short>(answered[i] ? 0 : POLLIN), 0});
    }
    if (poll(waited.data(), waited.size(), -1) < 0) return;
    if (waited[0].revents != 0) return;
    for (std::size_t i = open.size(); i-- > 0;) {
      if (waited[i + 2].revents == 0) continue;
      std::array<char, 4096> asked{};
      const bool alive = !answered[i] && recv(open[i].get(), asked.data(), asked.size(), 0) > 0;
      if (alive) {
        (void)!send(open[i].get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
        answered[i] = true;
      }
      if (!alive || then_ == Then::kClose) {
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
        answered.erase(answered.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (waited[1].revents != 0) {
      open.emplace_back(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      answered.push_back(false);
    }
  }
}

}  // namespace broach::cache::remote::test
