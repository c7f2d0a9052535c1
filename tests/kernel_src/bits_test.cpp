#include <cstdio>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach {
namespace {

// Changed together with docs/numerics.md, and never by accident: a served row's bits move with it.
constexpr const char* kDigest = "76803546c1140a54";

/// What the first line of a command's output says.
std::string output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "cannot run " + command;
  char line[256] = {};
  const char* got = std::fgets(line, sizeof line, pipe);
  if (pclose(pipe) != 0) return "failed: " + command;
  std::string text = got == nullptr ? "" : line;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string digest_from(const std::string& compiler) {
  const test::TempDir dir;
  const std::string program = (dir.path() / "bits").string();
  return output_of(compiler +
                   " -std=c++20 -I" BROACH_TEST_KERNEL_SRC " " BROACH_TEST_BITS_PROGRAM " -o " +
                   program + " -lm 2>&1 && " + program);
}

}  // namespace

TEST_CASE("every optimisation level computes the same bits", "[kernel_src][bits]") {
  const std::string options =
      GENERATE(as<std::string>{}, " -O0", " -O2 -ffp-contract=off", " -O3 -ffp-contract=off",
               " -O1 -fsanitize=address,undefined -ffp-contract=off");
  INFO(options);
  CHECK(digest_from(BROACH_TEST_CXX + options) == kDigest);
}

TEST_CASE("another compiler computes the same bits", "[kernel_src][bits]") {
  const std::string clang = BROACH_TEST_CLANG;
  if (clang.empty()) BROACH_SKIP("no clang++ to compare with");
  CHECK(digest_from(clang + " -O0") == kDigest);
  CHECK(digest_from(clang + " -O3") == kDigest);
#if defined(__x86_64__)
  CHECK(digest_from(clang + " -O3 -march=x86-64-v3") == kDigest);
#endif
}

#if defined(__x86_64__)
TEST_CASE("the host target's own options keep the bits, and contraction would not",
          "[kernel_src][bits]") {
  const std::string compiler = BROACH_TEST_CXX;
  CHECK(digest_from(compiler + " -O2 -march=x86-64-v3 -ffp-contract=off") == kDigest);
  const std::string contracted = digest_from(compiler + " -O2 -march=x86-64-v3 -ffp-contract=fast");
  if (compiler.find("clang") == std::string::npos) CHECK(contracted != kDigest);
}
#endif

}  // namespace broach
