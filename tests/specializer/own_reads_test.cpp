#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "specializer/limits.hpp"
#include "specializer/own/family_options.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/rtc/files_read.hpp"

// What a compiler reads is what the plan has: no file of the system, and nothing of the
// environment.

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;

namespace fs = std::filesystem;

std::vector<Target> each_kind() {
  return {*parse_target("sm_90a"), *parse_target("gfx90a"), *parse_target("host")};
}

/// What a search finds, and a newer hiprtc where one was fetched.
std::vector<CompilersOptions> each_toolchain() {
  std::vector<CompilersOptions> all = {compilers_options()};
  if (fs::exists(fs::path(BROACH_TEST_HIPRTC_PREFIX) / "usr")) {
    all.push_back(compilers_options());
    all.back().hiprtc_prefix = BROACH_TEST_HIPRTC_PREFIX;
  }
  return all;
}

/// A kernel that writes the constant kSeen, after `head`, with the options of a family's file.
Plan seen_plan(const Target& target, const std::string& head) {
  Plan plan;
  plan.family = "acme.seen";
  plan.target = target;
  plan.shape_json = "{}";
  plan.options = *own::compiler_options(target, {});
  const bool is_host = target.vendor == Vendor::kHost;
  plan.sources = {
      {"main.cu", head + "extern \"C\" " +
                      (is_host ? "__attribute__((visibility(\"default\"))) " : "__global__ ") +
                      "void seen(int* out) { *out = kSeen; }\n"}};
  plan.entries = {{"seen", 0, 0}};
  return plan;
}

std::string log_of(const Result<CompileOutput>& output) {
  return output ? "compiled" : output.error().message + "\n" + output.error().detail;
}

/// A variable of this process's environment for a while.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

std::string word_from(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[64] = {};
  const char* line = std::fgets(buffer, sizeof buffer, pipe);
  ::pclose(pipe);
  return line == nullptr ? "" : line;
}

}  // namespace

TEST_CASE("compiler variables in the environment change nothing", "[specializer][own][reads]") {
  const TempDir dir;
  std::ofstream(dir.path() / "planted.h") << "#define PLANTED 1\n";
  const std::string head =
      "#if defined(PLANTED_BY_OPTION) || __has_include(<planted.h>)\nconstexpr int kSeen = 1;\n"
      "#else\nconstexpr int kSeen = 2;\n#endif\n";
  for (const Target& target : each_kind()) {
    std::vector<std::byte> plain;
    {
      Compilers compilers(compilers_options());
      const auto output = compilers.compile(seen_plan(target, head));
      if (!output && output.error().code == ErrorCode::kCompilerMissing) continue;
      INFO(target.name << " " << log_of(output));
      REQUIRE(output);
      plain = output->binary;
    }
    const std::string folder = dir.path().string();
    const Variable planted[] = {{"CPATH", folder},
                                {"C_INCLUDE_PATH", folder},
                                {"CPLUS_INCLUDE_PATH", folder},
                                {"NVCC_APPEND_FLAGS", "-DPLANTED_BY_OPTION"},
                                {"NVCC_PREPEND_FLAGS", "-DPLANTED_BY_OPTION"},
                                {"NVRTC_APPEND_FLAGS", "-DPLANTED_BY_OPTION"},
                                {"HIPCC_COMPILE_FLAGS_APPEND", "-DPLANTED_BY_OPTION"},
                                {"HIPRTC_COMPILE_OPTIONS_APPEND", "-DPLANTED_BY_OPTION"},
                                {"CXXFLAGS", "-DPLANTED_BY_OPTION"},
                                {"GCC_EXEC_PREFIX", folder + "/"},
                                {"COMPILER_PATH", folder},
                                {"LIBRARY_PATH", folder}};
    // The plant works on whoever does not see to it.
    if (target.vendor == Vendor::kHost) {
      ::unsetenv("GCC_EXEC_PREFIX");
      ::unsetenv("COMPILER_PATH");
      CHECK(word_from("echo '#include <planted.h>\nPLANTED' | " BROACH_TEST_CXX
                      " -x c++ -E -P -") == "1\n");
      ::setenv("GCC_EXEC_PREFIX", (folder + "/").c_str(), 1);
      ::setenv("COMPILER_PATH", folder.c_str(), 1);
    }
    Compilers compilers(compilers_options());
    const auto output = compilers.compile(seen_plan(target, head));
    INFO(target.name << " " << log_of(output));
    REQUIRE(output);
    CHECK(output->binary == plain);
  }
}

TEST_CASE("no compiler finds a header of the system", "[specializer][own][reads]") {
  const CompilersOptions options = GENERATE(from_range(each_toolchain()));
  Compilers compilers(options);
  for (const Target& target : each_kind()) {
    if (!options.hiprtc_prefix.empty() && target.vendor != Vendor::kAmd) continue;
    for (const char* header : {"cuda_fp16.h", "stdio.h", "stddef.h", "cstdint", "planted.h"}) {
      const auto output = compilers.compile(
          seen_plan(target, std::string("#include <") + header + ">\nconstexpr int kSeen = 1;\n"));
      REQUIRE_FALSE(output);
      if (output.error().code == ErrorCode::kCompilerMissing) break;
      INFO(target.name << " " << log_of(output));
      CHECK(output.error().code == ErrorCode::kCompileFailed);
      CHECK(contains(output.error().message, header));
    }
  }
}

TEST_CASE("a file that a compiler was led to by its path fails the compile by its name",
          "[specializer][own][reads]") {
  const TempDir dir;
  const std::string stranger = (dir.path() / "stranger.h").string();
  std::ofstream(stranger) << "constexpr int kSeen = 1;\n";
  const CompilersOptions options = GENERATE(from_range(each_toolchain()));
  Compilers compilers(options);
  for (const Target& target : each_kind()) {
    if (!options.hiprtc_prefix.empty() && target.vendor != Vendor::kAmd) continue;
    for (const std::string& head : {"#include \"" + stranger + "\"\n",
                                    "#define HEADER <" + stranger + ">\n#include HEADER\n"}) {
      const auto output = compilers.compile(seen_plan(target, head));
      REQUIRE_FALSE(output);
      if (output.error().code == ErrorCode::kCompilerMissing) break;
      INFO(target.name << " " << log_of(output));
      CHECK(output.error().code == ErrorCode::kCompileFailed);
      CHECK(contains(output.error().message, stranger));
    }
    // The worker is as good as before.
    const auto output = compilers.compile(seen_plan(target, "constexpr int kSeen = 3;\n"));
    if (!output && output.error().code == ErrorCode::kCompilerMissing) continue;
    INFO(target.name << " " << log_of(output));
    CHECK(output);
  }
}

TEST_CASE("a template's instance is known by the name that the compiler gave it",
          "[specializer][own][names]") {
  const CompilersOptions options = GENERATE(from_range(each_toolchain()));
  Compilers compilers(options);
  for (const Target& target : each_kind()) {
    if (!options.hiprtc_prefix.empty() && target.vendor != Vendor::kAmd) continue;
    if (target.vendor == Vendor::kHost) continue;
    Plan plan = seen_plan(target, "constexpr int kSeen = 1;\n");
    plan.sources[0].bytes +=
        "template <class T, int kN> __global__ void scale(T* x) { x[threadIdx.x] *= kN; }\n"
        "__global__ void plain(float* x) { x[0] = 1.0f; }\n";
    plan.kind = target.vendor == Vendor::kNvidia ? ArtifactKind::kCubin : ArtifactKind::kCodeObject;
    plan.entries.resize(3);
    plan.entries[1].function = "scale_float";
    plan.entries[1].expression = "scale<float, 4>";
    plan.entries[2].function = "plain";
    plan.entries[2].expression = "plain";
    const auto output = compilers.compile(plan);
    if (!output && output.error().code == ErrorCode::kCompilerMissing) continue;
    INFO(target.name << " " << log_of(output));
    REQUIRE(output);
    CHECK(output->symbols == std::vector<std::string>{"seen", "_Z5scaleIfLi4EEvPT_", "_Z5plainPf"});
    const auto limits = read_limits(plan, output->binary, output->log, output->symbols);
    INFO((limits ? "" : limits.error().message));
    REQUIRE(limits);
    REQUIRE(limits->size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK((*limits)[i].function == output->symbols[i]);
      CHECK((*limits)[i].registers.has_value());
    }
    // The entries' own names are not in the binary.
    CHECK_FALSE(read_limits(plan, output->binary, output->log));

    plan.entries[1].expression = "scale<absent>";
    const auto refused = compilers.compile(plan);
    REQUIRE_FALSE(refused);
    INFO(log_of(refused));
    CHECK(refused.error().code == ErrorCode::kCompileFailed);
    CHECK(contains(refused.error().detail, "absent"));
  }
}

TEST_CASE("the host compiler names no template's instance and says what does",
          "[specializer][own][names]") {
  Compilers compilers(compilers_options());
  Plan plan = seen_plan(*parse_target("host"), "constexpr int kSeen = 1;\n");
  plan.entries[0].expression = "seen<4>";
  const auto refused = compilers.compile(plan);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(contains(refused.error().message, "\"seen<4>\""));
  CHECK(contains(refused.error().message, "broach/kernel.cuh"));
}

TEST_CASE("a list of the files read is understood as compilers write it",
          "[specializer][own][reads]") {
  using Names = std::vector<std::string>;
  CHECK(broach::rtc::prerequisites("out.o: a.h \\\n  b\\ c.h /d$$e/f\\#g\n\na.h:\n") ==
        Names{"a.h", "b c.h", "/d$e/f#g"});
  CHECK(broach::rtc::prerequisites("x:y.o: a.h") == Names{"a.h"});
  CHECK(broach::rtc::prerequisites("out.o:\n") == Names{});
  CHECK(broach::rtc::prerequisites("") == Names{});

  const TempDir dir;
  const fs::path list = dir.path() / "list";
  const std::string file = (dir.path() / "read.h").string();
  std::ofstream(file) << "\n";
  const auto nobodys = [](const std::string&) { return false; };
  std::ofstream(list) << "out.o: - /no/such/file.h\n";
  CHECK(broach::rtc::check_files_read(list, nobodys));
  CHECK_FALSE(fs::exists(list));
  CHECK(broach::rtc::check_files_read(list, nobodys));
  std::ofstream(list) << "out.o: - " << file << "\n";
  CHECK(broach::rtc::check_files_read(list, [&](const std::string& name) { return name == file; }));
  std::ofstream(list) << "out.o: - " << file << "\n";
  const auto stranger = broach::rtc::check_files_read(list, nobodys);
  REQUIRE_FALSE(stranger);
  CHECK(contains(stranger.error().message, file));
}
