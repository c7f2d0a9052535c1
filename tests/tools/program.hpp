#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace broach::test {

/// How a program ended and what it wrote.
struct Ended {
  int status = -1;  ///< Exit status; 128 + the signal that killed it.
  std::string out;
  std::string err;
};

/// Runs the `broach` program that was built beside this test, with an environment of its own:
/// PATH, an empty HOME below `home`, and what `environment` adds.
class Program {
 public:
  explicit Program(std::filesystem::path home);

  /// What `run` gives when the machine does not let it mount.
  static constexpr int kCannotMount = 126;
  /// And when `prepare` could not do its work.
  static constexpr int kCannotPrepare = 125;

  Program& set(const std::string& name, const std::string& value);
  /// Sends standard output to a file of the machine's, such as /dev/full.
  Program& write_results_to(const std::string& file);
  /// Runs in the child before the program; one that returns false is not run.
  Program& prepare(std::function<bool()> before);
  /// The same for standard error; an empty name closes it.
  Program& write_messages_to(const std::string& file);
  /// Runs the program where `home` is a file system of so many bytes of its own.
  Program& mount_small_tmpfs(std::uint64_t bytes);

  Ended run(const std::vector<std::string>& arguments) const;
  /// The same with standard output and error on a pseudo-terminal of 60 columns; both arrive in
  /// `out`.
  Ended run_on_terminal(const std::vector<std::string>& arguments) const;

  const std::filesystem::path& home() const noexcept { return home_; }
  /// Where the program keeps its cache unless told otherwise.
  std::filesystem::path cache() const { return home_ / ".cache" / "broach"; }

 private:
  [[noreturn]] void become(const std::vector<std::string>& arguments) const;

  std::filesystem::path home_;
  std::map<std::string, std::string> environment_;
  std::string results_file_;
  std::optional<std::string> messages_file_;
  std::uint64_t tmpfs_bytes_ = 0;
  std::function<bool()> prepare_;
};

/// The arguments that warm one shape for the host: the Gemma 4 12B decode.
std::vector<std::string> warm_arguments(const std::vector<std::string>& more = {});

/// What `warm_arguments({"--json"})` writes when nothing is in the cache. Compiled once a process.
const std::string& cold_warm_output();

/// Fills a program's empty cache with what that run left behind.
void give_warmed_cache(const Program& program);

}  // namespace broach::test
