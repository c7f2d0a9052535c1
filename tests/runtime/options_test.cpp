#include "broach/options.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "broach/runtime.hpp"
#include "tests/support/as_user.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach {
namespace {

/// Sets a variable for the length of a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    had_ = before != nullptr;
    if (had_) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() {
    if (had_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  bool had_ = false;
  std::string before_;
};

}  // namespace

TEST_CASE("variables are read once into the options", "[runtime][options]") {
  const Variable device("BROACH_DEVICE", "cuda:1");
  const Variable first_use("BROACH_FIRST_USE", "never");
  const Variable chosen("BROACH_CACHE_DIR", "/chosen");
  const Variable xdg("XDG_CACHE_HOME", "/xdg");
  const Variable home("HOME", "/home/user");
  const Variable layers("BROACH_CACHE_PATH", "/image::/second:");
  const Variable bytes("BROACH_CACHE_BYTES", "123456789012");
  const Variable jobs("BROACH_JOBS", "3");
  const Options options = Options::from_environment();
  CHECK(options.device == "cuda:1");
  CHECK(options.first_use == FirstUse::kNever);
  CHECK(options.cache_directories ==
        std::vector<std::string>{"/chosen", "/xdg/broach", "/home/user/.cache/broach"});
  CHECK(options.read_only_caches == std::vector<std::string>{"/image", "/second"});
  CHECK(options.cache_bytes == 123456789012U);
  CHECK(options.jobs == 3);
  CHECK(options.problems.empty());
}

TEST_CASE("remotes are read with what they share", "[runtime][options]") {
  const Variable remote("BROACH_REMOTE", "redis://cache.example:6380/2");
  const Variable token("BROACH_REMOTE_TOKEN", "s3cret");
  const Variable file("BROACH_REMOTE_TOKEN_FILE", "/run/secrets/token");
  const Variable authorities("BROACH_REMOTE_CA", "/etc/fleet.pem");
  const Variable mode("BROACH_REMOTE_MODE", "read-only");
  const Variable timeout("BROACH_REMOTE_TIMEOUT_MS", "50");
  const Variable key("BROACH_SIGNING_KEY", "/run/secrets/key");
  const Options options = Options::from_environment();
  CHECK(options.problems.empty());
  REQUIRE(options.remotes.size() == 1);
  CHECK(options.remotes[0].url == "redis://cache.example:6380/2");
  CHECK(options.remotes[0].secret == "s3cret");
  CHECK(options.remotes[0].secret_file == "/run/secrets/token");
  CHECK(options.remotes[0].certificates == "/etc/fleet.pem");
  CHECK(options.remotes[0].use == RemoteUse::kReadOnly);
  CHECK(options.remotes[0].first_byte_ms == 50);
  CHECK(options.signing_key == "/run/secrets/key");
}

TEST_CASE("a secret that would go to several remotes is a problem, and is not repeated",
          "[runtime][options]") {
  const Variable remote("BROACH_REMOTE", " http://one.example/  http://two.example/ ");
  CHECK(Options::from_environment().remotes.size() == 2);
  const Variable token("BROACH_REMOTE_TOKEN", "s3cret");
  const Variable mode("BROACH_REMOTE_MODE", "write");
  const Options options = Options::from_environment();
  REQUIRE(options.problems.size() == 2);
  CHECK(options.problems[0] ==
        "BROACH_REMOTE_MODE is \"write\"; it must be read-write or read-only");
  CHECK(options.problems[1].find("put each secret into its URL") != std::string::npos);
  CHECK(options.problems[1].find("s3cret") == std::string::npos);
}

TEST_CASE(
    "trusted keys are looked for where they are named, else in the user's and the system's place",
    "[runtime][options]") {
  const Variable xdg("XDG_CONFIG_HOME", "");
  const Variable home("HOME", "/home/user");
  using Paths = std::vector<std::string>;
  {
    const Variable named("BROACH_TRUSTED_KEYS", "/a:/b");
    CHECK(Options::from_environment().trusted_keys == Paths{"/a", "/b"});
  }
  const Variable named("BROACH_TRUSTED_KEYS", "");
  CHECK(Options::from_environment().trusted_keys ==
        Paths{"/home/user/.config/broach/trusted_keys", "/etc/broach/trusted_keys"});
  const Variable config("XDG_CONFIG_HOME", "/config");
  CHECK(Options::from_environment().trusted_keys ==
        Paths{"/config/broach/trusted_keys", "/etc/broach/trusted_keys"});
  const Variable nobody("HOME", "/");
  const Variable none("XDG_CONFIG_HOME", "");
  CHECK(Options::from_environment().trusted_keys == Paths{"/etc/broach/trusted_keys"});
}

TEST_CASE("a privileged program believes no variable of whoever starts it",
          "[runtime][options][trust]") {
  if (geteuid() != 0) BROACH_SKIP("making a program setuid needs root");
  const test::TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  const auto program = dir.path() / "engine";
  std::filesystem::copy_file(BROACH_OPTIONS_PROBE, program);
  const auto output = dir.path() / "output";
  const auto run = [&] {
    const int out = open(output.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    const bool done = test::as_user(23456, [&] {
      dup2(out, STDOUT_FILENO);
      for (const char* name :
           {"BROACH_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME", "BROACH_CACHE_PATH",
            "BROACH_FAMILY_PATH", "BROACH_TRUSTED_KEYS", "BROACH_SIGNING_KEY", "BROACH_WORKER",
            "BROACH_NVRTC", "BROACH_HIPRTC", "BROACH_HIPRTC_PREFIX", "BROACH_CUDA_INCLUDE",
            "BROACH_HIP_INCLUDE", "BROACH_CXX", "BROACH_REMOTE", "PATH"}) {
        setenv(name, "/planted", 1);
      }
      execl(program.c_str(), "engine", static_cast<char*>(nullptr));
      return false;
    });
    close(out);
    CHECK(done);
    std::ifstream file(output);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string unprivileged = run();
  CHECK(unprivileged.find("worker /planted") != std::string::npos);
  CHECK(unprivileged.find("families /planted") != std::string::npos);
  // Another user's, and theirs with their rights.
  REQUIRE(chown(program.c_str(), 12345, 12345) == 0);
  REQUIRE(chmod(program.c_str(), 04755) == 0);
  const std::string said = run();
  if (said.find("worker /planted") != std::string::npos) {
    BROACH_SKIP("programs are not setuid on this file system");
  }
  CHECK(said.find("/planted") == std::string::npos);
  CHECK(said.find("path /usr/local/bin:/usr/bin:/bin") != std::string::npos);
  CHECK(said.find("cache ") == std::string::npos);
}

TEST_CASE("a home of / is no place for a cache", "[runtime][options]") {
  const Variable chosen("BROACH_CACHE_DIR", "");
  const Variable xdg("XDG_CACHE_HOME", "");
  const Variable home("HOME", "/");
  CHECK(Options::from_environment().cache_directories.empty());
}

TEST_CASE("a variable that cannot be read is named, and no runtime is made from it",
          "[runtime][options]") {
  for (const char* text : {"1e9", "-1", "12 ", "4294967296", "many"}) {
    const Variable jobs("BROACH_JOBS", text);
    const Options options = Options::from_environment();
    REQUIRE(options.problems.size() == 1);
    CHECK(options.problems[0] == "BROACH_JOBS is \"" + std::string(text) +
                                     "\"; it must be a whole number from 0 to 4294967295");
    CHECK(options.jobs == 0);
  }
  const Variable first_use("BROACH_FIRST_USE", "later");
  const Options options = Options::from_environment();
  REQUIRE(options.problems.size() == 1);
  CHECK(options.problems[0] ==
        "BROACH_FIRST_USE is \"later\"; it must be wait, background or never");
}

}  // namespace broach
