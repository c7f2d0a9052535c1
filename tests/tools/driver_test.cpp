#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;

namespace {

namespace fs = std::filesystem;

/// Which drivers the program looked for, found or not: the loader writes each search down.
std::string drivers_sought(const fs::path& dir, const std::vector<std::string>& words) {
  const fs::path log = dir / "loads";
  fs::create_directory(log);
  Program program(dir / "home");
  program.set("LD_DEBUG", "files,libs").set("LD_DEBUG_OUTPUT", (log / "of").string());
  // 1 is an answer too: not every shape of a model was warmed here.
  CHECK(program.run(words).status <= 1);
  std::string text;
  for (const auto& entry : fs::directory_iterator(log)) {
    std::ifstream in(entry.path(), std::ios::binary);
    text.append(std::istreambuf_iterator<char>(in), {});
  }
  fs::remove_all(log);
  std::string sought = text.empty() ? "no log" : "";
  for (const char* driver : {"libcuda.so", "libamdhip64.so"}) {
    if (text.find(driver) != std::string::npos) sought += driver;
  }
  return sought;
}

}  // namespace

TEST_CASE("what warms, lists, checks or carries binaries looks for no driver", "[tools][driver]") {
  const TempDir dir;
  const Program program(dir.path() / "home");
  give_warmed_cache(program);
  const std::string bundle = (dir.path() / "kernels.broach").string();
  const std::string cache = program.cache().string();
  const std::vector<std::vector<std::string>> commands = {
      warm_arguments(),
      {"ls"},
      {"limits"},
      {"explain", "window_rows head_dim=256 gqa_ratio=2"},
      {"coverage", "gemma-4", "--target", "host", "--offline"},
      {"export", "-o", bundle},
      {"import", "--unsigned", bundle},
      {"diff", cache, cache},
      {"verify"},
      {"gc", "--dry-run"},
      {"quarantine"},
      {"journal"},
      {"stats"}};
  for (const std::vector<std::string>& words : commands) {
    CAPTURE(words[0]);
    CHECK(drivers_sought(dir.path(), words).empty());
  }
  // The log would tell: this command is there to look for drivers.
  const std::string found = drivers_sought(dir.path(), {"doctor"});
  CHECK(found.find("libcuda.so") != std::string::npos);
  CHECK(found.find("libamdhip64.so") != std::string::npos);
}
