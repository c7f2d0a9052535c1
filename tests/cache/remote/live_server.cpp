#include "tests/cache/remote/live_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "cache/fd.hpp"

namespace broach::cache::remote::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

bool answers(std::uint16_t port) {
  const Fd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  return connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// A server says nothing that all of them say, so its port is asked until it answers.
void wait_until_it_answers(std::uint16_t port) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!answers(port)) {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("no server came up");
    poll(nullptr, 0, 5);
  }
}

}  // namespace

std::optional<std::string> program_named(const std::string& name) {
  for (const char* folder : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"}) {
    if (access((folder + name).c_str(), X_OK) == 0) return folder + name;
  }
  return std::nullopt;
}

std::uint16_t free_port() {
  const Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("no free port");
  }
  return ntohs(address.sin_port);
}

std::optional<Certificate> make_certificate(const std::filesystem::path& folder) {
  const auto openssl = program_named("openssl");
  if (!openssl) return std::nullopt;
  Certificate made{folder / "certificate.pem", folder / "key.pem"};
  broach::test::ChildProcess process(
      *openssl,
      {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
       "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
       made.key.string(), "-out", made.certificate.string()});
  if (process.wait() != 0) return std::nullopt;
  return made;
}

LiveServer::LiveServer(std::string program, std::vector<std::string> words, std::uint16_t port,
                       std::shared_ptr<broach::test::TempDir> folder, std::filesystem::path files)
    : program_(std::move(program)),
      words_(std::move(words)),
      port_(port),
      folder_(std::move(folder)),
      files_(std::move(files)) {
  start();
}

void LiveServer::start() {
  process_.emplace(program_, words_);
  wait_until_it_answers(port_);
}

std::string LiveServer::url(const std::string& scheme, const std::string& path) const {
  return scheme + "://127.0.0.1:" + std::to_string(port_) + path;
}

std::optional<LiveServer> LiveServer::redis(std::vector<std::string> words) {
  const auto program = program_named("redis-server");
  if (!program) return std::nullopt;
  const auto folder = std::make_shared<broach::test::TempDir>();
  const std::uint16_t port = free_port();
  std::vector<std::string> all{"--bind",       "127.0.0.1", "--save", "",
                               "--appendonly", "no",        "--dir",  folder->path().string(),
                               "--loglevel",   "warning"};
  if (words.empty() || words.front() != "--port") {
    all.insert(all.end(), {"--port", std::to_string(port)});
  }
  for (std::string& word : words) all.push_back(word == "PORT" ? std::to_string(port) : word);
  return LiveServer(*program, all, port, folder, folder->path());
}

std::optional<LiveServer> LiveServer::redis_with_tls(const Certificate& certificate,
                                                     std::vector<std::string> words) {
  std::vector<std::string> all{"--port",
                               "0",
                               "--tls-port",
                               "PORT",
                               "--tls-cert-file",
                               certificate.certificate.string(),
                               "--tls-key-file",
                               certificate.key.string(),
                               "--tls-auth-clients",
                               "no"};
  for (std::string& word : words) all.push_back(std::move(word));
  return redis(std::move(all));
}

std::uint64_t LiveServer::written_bytes() const {
  std::ifstream counters("/proc/" + std::to_string(process_->pid()) + "/io");
  std::string name;
  std::uint64_t value = 0;
  while (counters >> name >> value) {
    if (name == "wchar:") return value;
  }
  throw std::runtime_error("the kernel does not count what a process writes");
}

std::optional<LiveServer> LiveServer::nginx_at(const std::string& listen_words,
                                               const std::string& in_location) {
  const auto program = program_named("nginx");
  if (!program) return std::nullopt;
  const auto folder = std::make_shared<broach::test::TempDir>();
  const std::uint16_t port = free_port();
  const std::filesystem::path root = folder->path() / "files";
  std::filesystem::create_directory(root);
  // Its workers may run as another user; in one process it writes as this one.
  std::ofstream(folder->path() / "nginx.conf")
      << "daemon off; master_process off; pid nginx.pid; error_log stderr crit;\n"
      << "events { worker_connections 64; }\n"
      << "http {\n  access_log off; client_max_body_size 64m;\n"
      << "  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;\n"
      << "  uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n"
      << "  server {\n    listen 127.0.0.1:" << port << listen_words << ";\n"
      << "    location / {\n      root " << root.string() << ";\n"
      << "      dav_methods PUT; create_full_put_path on; dav_access user:rw;\n"
      << in_location << "    }\n  }\n}\n";
  return LiveServer(*program,
                    {"-p", folder->path().string() + "/", "-c", "nginx.conf", "-e", "stderr"}, port,
                    folder, root);
}

std::optional<LiveServer> LiveServer::nginx(const std::string& in_location) {
  return nginx_at("", in_location);
}

std::optional<LiveServer> LiveServer::nginx_with_tls(const Certificate& certificate) {
  return nginx_at(" ssl; ssl_certificate " + certificate.certificate.string() +
                      "; ssl_certificate_key " + certificate.key.string(),
                  "");
}

}  // namespace broach::cache::remote::test
