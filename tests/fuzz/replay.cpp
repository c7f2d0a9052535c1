// Runs files through the fuzz targets, built by any compiler.
//   fuzz_replay DIRECTORY...    each holds <target>/<file>; prints how many files ran, by target
// Ends by abort where a target finds a broken promise, after naming the file on standard error.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/replay_targets.hpp"

namespace {

namespace fs = std::filesystem;

int replay(const fs::path& file, broach::fuzz::Target run) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  std::fprintf(stderr, "fuzz_replay: %s\n", file.c_str());
  // An allocation of exactly this size, so that a sanitizer sees the first byte beyond.
  const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
  return run(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char* argv[]) {
  std::map<std::string, std::size_t> ran;
  for (int i = 1; i < argc; ++i) {
    for (const auto& [name, run] : broach::fuzz::kTargets) {
      const fs::path folder = fs::path(argv[i]) / name;
      if (!fs::is_directory(folder)) continue;
      for (const auto& file : fs::directory_iterator(folder)) {
        if (replay(file.path(), run) != 0) return 1;
        ++ran[std::string(name)];
      }
    }
  }
  for (const auto& [name, run] : broach::fuzz::kTargets) {
    std::printf("%s %zu\n", std::string(name).c_str(), ran[std::string(name)]);
  }
  return 0;
}
