#pragma once

#include <filesystem>
#include <map>
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

  Program& set(const std::string& name, const std::string& value);

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
};

}  // namespace broach::test
