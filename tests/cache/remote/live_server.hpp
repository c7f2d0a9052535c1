#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache::remote::test {

/// The first of the usual folders that holds the program.
std::optional<std::string> program_named(const std::string& name);

/// A port of 127.0.0.1 that nobody listens at just now.
std::uint16_t free_port();

/// A self-signed certificate for 127.0.0.1 that openssl makes, and its key.
struct Certificate {
  std::filesystem::path certificate;
  std::filesystem::path key;
};
std::optional<Certificate> make_certificate(const std::filesystem::path& folder);

/// A real server on a free port of loopback, stopped with its owner.
class LiveServer {
 public:
  /// redis-server, with further words of its command line. Absent: the program is not here.
  static std::optional<LiveServer> redis(std::vector<std::string> words = {});

  /// redis-server that speaks TLS alone.
  static std::optional<LiveServer> redis_with_tls(const Certificate& certificate,
                                                  std::vector<std::string> words = {});

  /// nginx with WebDAV's PUT; `in_location` is further text of its location.
  static std::optional<LiveServer> nginx(const std::string& in_location = "");
  static std::optional<LiveServer> nginx_with_tls(const Certificate& certificate);

  std::uint16_t port() const noexcept { return port_; }
  std::string url(const std::string& scheme, const std::string& path = "/") const;
  const std::filesystem::path& files() const noexcept { return files_; }

  /// What the process has written so far, to sockets too.
  std::uint64_t written_bytes() const;

  void stop() const { process_->signal(SIGSTOP); }
  void go_on() const { process_->signal(SIGCONT); }
  void kill() { process_.reset(); }

  /// Starts it again, where it was.
  void start();

 private:
  LiveServer(std::string program, std::vector<std::string> words, std::uint16_t port,
             std::shared_ptr<broach::test::TempDir> folder, std::filesystem::path files);
  static std::optional<LiveServer> nginx_at(const std::string& listen_words,
                                            const std::string& in_location);

  std::string program_;
  std::vector<std::string> words_;
  std::uint16_t port_ = 0;
  std::shared_ptr<broach::test::TempDir> folder_;
  std::filesystem::path files_;
  std::optional<broach::test::ChildProcess> process_;
};

/// Waits until a server has written so many bytes, or `asked`, which makes it write, has ended.
template <class Future>
void wait_until_written(const LiveServer& server, std::uint64_t bytes, const Future& asked) {
  while (server.written_bytes() < bytes &&
         asked.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    std::this_thread::yield();
  }
}

}  // namespace broach::cache::remote::test
