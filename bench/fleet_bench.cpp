// Warms one manifest from several processes that share nothing but Redis, each as a machine of its
// own, and counts how often each key was compiled in the fleet; then the same without Redis. Exit
// status 1 when a key was not compiled exactly once in the fleet.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "bench/scratch_directory.hpp"

namespace broach::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

struct Wanted {
  std::string broach;
  std::string manifest = "gemma-4";
  std::string target = "host";
  int machines = 4;
  int jobs = 1;
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

std::uint16_t free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  (void)bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  (void)getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  close(listener);
  return ntohs(address.sin_port);
}

bool answers(std::uint16_t port) {
  const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool there =
      connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(peer);
  return there;
}

using Variables = std::vector<std::pair<const char*, std::string>>;

/// Starts a program with its output in a file, and with these variables besides its parent's.
pid_t start(const Words& words, const fs::path& output, const Variables& variables) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int out = open(output.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  const int err = open((output.string() + ".messages").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const auto& [name, value] : variables) setenv(name, value.c_str(), 1);
  execvp(argv[0], argv.data());
  _exit(127);
}

/// redis-server on a free port, killed with its owner.
class Redis {
 public:
  explicit Redis(const fs::path& folder) : port_(free_port()) {
    process_ = start({"redis-server", "--bind", "127.0.0.1", "--port", std::to_string(port_),
                      "--save", "", "--appendonly", "no", "--dir", folder.string()},
                     folder / "redis.log", {});
    while (!answers(port_) && waitpid(process_, nullptr, WNOHANG) == 0) poll(nullptr, 0, 5);
    running_ = answers(port_);
  }
  ~Redis() {
    ::kill(process_, SIGKILL);
    (void)waitpid(process_, nullptr, 0);
  }
  Redis(const Redis&) = delete;
  Redis& operator=(const Redis&) = delete;

  bool running() const noexcept { return running_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

 private:
  std::uint16_t port_;
  pid_t process_ = -1;
  bool running_ = false;
};

/// All machines warm the manifest at once; with an empty `remote` each is alone.
Json warm(const Wanted& wanted, const std::string& remote) {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path();
  const fs::path key = root / "fleet.key";
  std::ofstream(key) << "broach-secret-key-1 " << std::string(64, '7') << " bench\n";
  fs::permissions(key, fs::perms::owner_read);
  const auto began = Clock::now();
  std::vector<pid_t> machines;
  for (int i = 0; i < wanted.machines; ++i) {
    const fs::path home = root / std::to_string(i);
    fs::create_directory(home);
    const Variables variables{{"BROACH_CACHE_DIR", (home / "cache").string()},
                              {"BROACH_CACHE_PATH", ""},
                              {"BROACH_SIGNING_KEY", key.string()},
                              {"BROACH_REMOTE", remote}};
    machines.push_back(start({wanted.broach, "warm", wanted.manifest, "--target", wanted.target,
                              "--jobs", std::to_string(wanted.jobs), "--json"},
                             root / (std::to_string(i) + ".json"), variables));
  }
  for (const pid_t machine : machines) (void)waitpid(machine, nullptr, 0);
  const std::chrono::duration<double> took = Clock::now() - began;

  Json result;
  std::map<std::string, int> compiles;  // By key.
  int hits = 0;
  int failed = 0;
  double compile_s = 0;
  for (int i = 0; i < wanted.machines; ++i) {
    std::ifstream file(root / (std::to_string(i) + ".json"));
    const Json said = Json::parse(file, nullptr, false);
    if (said.is_discarded() || !said.contains("entries")) {
      std::ifstream words(root / (std::to_string(i) + ".json.messages"));
      return {{"error", std::string(std::istreambuf_iterator<char>(words), {})}};
    }
    result["compiled_by_machine"].push_back(said["compiled"]);
    hits += said["hits"].get<int>();
    failed += said["failed"].get<int>();
    for (const Json& entry : said["entries"]) {
      int& count = compiles[entry["key"]];
      if (!entry["compiled"].get<bool>()) continue;
      ++count;
      compile_s += entry["compile_ms"].get<double>() / 1000;
    }
  }
  int most = 0;
  int total = 0;
  for (const auto& [name, count] : compiles) {
    most = std::max(most, count);
    total += count;
  }
  result["keys"] = compiles.size();
  result["compiles"] = total;
  result["most_compiles_of_a_key"] = most;
  result["hits"] = hits;
  result["failed"] = failed;
  result["compile_s"] = compile_s;
  result["wall_s"] = took.count();
  return result;
}

int run(int argc, char* argv[]) {
  Wanted wanted;
  wanted.broach = (fs::read_symlink("/proc/self/exe").parent_path() / "broach").string();
  CLI::App app{"Warms one manifest from a fleet that shares a Redis, and counts the compiles."};
  app.add_option("--broach", wanted.broach, "The broach program");
  app.add_option("--manifest", wanted.manifest, "What is warmed");
  app.add_option("--target", wanted.target, "For which target");
  app.add_option("--machines", wanted.machines, "Processes, each with a cache of its own");
  app.add_option("--jobs", wanted.jobs, "Compiles at a time in each");
  CLI11_PARSE(app, argc, argv);

  Json result = {{"bench", "fleet"},        {"manifest", wanted.manifest},
                 {"target", wanted.target}, {"machines", wanted.machines},
                 {"jobs", wanted.jobs},     {"cores", sysconf(_SC_NPROCESSORS_ONLN)}};
  const ScratchDirectory folder;
  const Redis redis(folder.path());
  bool once = true;
  if (redis.running()) {
    const Json fleet = warm(wanted, redis.url());
    once = fleet.value("most_compiles_of_a_key", 0) == 1 && fleet.value("failed", 0) == 0;
    result["through_redis"] = fleet;
    result["alone"] = warm(wanted, "");
  } else {
    result["skipped"] = "redis-server does not start here";
  }
  std::cout << result.dump(2) << '\n';
  if (!once) std::cerr << "fleet_bench: not every key was compiled once in the fleet\n";
  return once ? 0 : 1;
}

}  // namespace
}  // namespace broach::bench

int main(int argc, char* argv[]) { return broach::bench::run(argc, argv); }
