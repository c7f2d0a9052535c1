#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;

/// Why a target cannot be compiled for here, or nothing.
std::string missing(Compilers& compilers, const Target& target) {
  const auto identity = compilers.identity(target);
  if (identity) return "";
  REQUIRE(identity.error().code == ErrorCode::kCompilerMissing);
  return identity.error().message;
}

std::vector<Target> each_kind() { return {nvidia("sm_90a"), amd("gfx90a"), host()}; }

}  // namespace

TEST_CASE("each compiler compiles a plan with headers that include each other",
          "[specializer][compile]") {
  Compilers compilers(compilers_options());
  for (const Target& target : each_kind()) {
    const std::string why = missing(compilers, target);
    if (!why.empty()) BROACH_SKIP(why);
    const auto output = compilers.compile(tiny_plan(target));
    INFO(target.name << ": " << (output ? "" : output.error().message + output.error().detail));
    REQUIRE(output);
    CHECK(output->binary.size() > 64);
    // All three write ELF; hiprtc may wrap it in a bundle of objects.
    const std::string bytes(reinterpret_cast<const char*>(output->binary.data()),
                            output->binary.size());
    CHECK(contains(bytes,
                   "\x7f"
                   "ELF"));
    CHECK(contains(bytes, "tiny"));
    CHECK(output->compiler.key_text == compilers.identity(target)->key_text);
  }
}

TEST_CASE("a faulty plan fails with the whole log and the options", "[specializer][compile]") {
  Compilers compilers(compilers_options());
  for (const Target& target : each_kind()) {
    const std::string why = missing(compilers, target);
    if (!why.empty()) BROACH_SKIP(why);
    Plan plan = tiny_plan(target, "twice(first_fault) + second(last_fault)");
    const auto output = compilers.compile(plan);
    REQUIRE_FALSE(output);
    const Error& error = output.error();
    INFO(error.message << "\n" << error.detail);
    CHECK(error.code == ErrorCode::kCompileFailed);
    CHECK(contains(error.message, target.name));
    CHECK(contains(error.message, "error"));
    CHECK(contains(error.message, "main.cu"));
    CHECK(contains(error.detail, "first_fault"));
    CHECK(contains(error.detail, "last_fault"));
    CHECK(contains(error.detail, plan.options.front()));
    // The worker lives on.
    CHECK(compilers.compile(tiny_plan(target)));
  }
}

TEST_CASE("a header outside the plan is not found, wherever the process stands",
          "[specializer][compile]") {
  TempDir dir;
  std::ofstream(dir.path() / "stray.cuh") << "int stray;\n";
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  Compilers compilers(compilers_options());
  for (const Target& target : each_kind()) {
    if (!missing(compilers, target).empty()) continue;
    Plan plan = tiny_plan(target);
    plan.sources[0].bytes = "#include \"stray.cuh\"\n" + plan.sources[0].bytes;
    const auto output = compilers.compile(plan);
    INFO(target.name);
    REQUIRE_FALSE(output);
    CHECK(output.error().code == ErrorCode::kCompileFailed);
    CHECK(contains(output.error().message + output.error().detail, "stray.cuh"));
  }
  std::filesystem::current_path(before);
}

TEST_CASE("the host compiler's object loads and computes", "[specializer][compile]") {
  Compilers compilers(compilers_options());
  if (const std::string why = missing(compilers, host()); !why.empty()) BROACH_SKIP(why);
  Plan plan = tiny_plan(host());
  const auto output = compilers.compile(plan);
  REQUIRE(output);
  TempDir dir;
  const auto file = dir.path() / "tiny.so";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(output->binary.data()),
             static_cast<std::streamsize>(output->binary.size()));
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  auto* tiny = reinterpret_cast<void (*)(int*)>(::dlsym(library, "tiny"));
  REQUIRE(tiny != nullptr);
  int value = 0;
  tiny(&value);
  CHECK(value == 4);
  ::dlclose(library);
}

TEST_CASE("the same plan gives the same bytes in another directory, locale and process",
          "[specializer][compile]") {
  for (const Target& target : each_kind()) {
    std::vector<std::byte> first;
    {
      Compilers compilers(compilers_options());
      if (!missing(compilers, target).empty()) continue;
      auto output = compilers.compile(tiny_plan(target));
      REQUIRE(output);
      first = std::move(output->binary);
      // The same worker again.
      output = compilers.compile(tiny_plan(target));
      REQUIRE(output);
      CHECK(output->binary == first);
    }
    TempDir dir;
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(dir.path());
    std::setlocale(LC_ALL, "C.UTF-8");
    ::setenv("LANG", "de_DE.UTF-8", 1);
    ::setenv("NVRTC_APPEND_OPTIONS", "-lineinfo", 1);  // Compilers may not see the environment.
    ::setenv("CPATH", dir.path().c_str(), 1);
    auto options = compilers_options();
    options.scratch = {dir.path()};
    {
      Compilers compilers(options);
      const auto output = compilers.compile(tiny_plan(target));
      INFO(target.name);
      REQUIRE(output);
      CHECK(output->binary == first);
    }
    CHECK(std::filesystem::is_empty(dir.path()));
    ::unsetenv("NVRTC_APPEND_OPTIONS");
    ::unsetenv("CPATH");
    ::unsetenv("LANG");
    std::setlocale(LC_ALL, "C");
    std::filesystem::current_path(before);
  }
}

TEST_CASE("compiles run side by side on as many workers as there are jobs",
          "[specializer][compile]") {
  auto options = compilers_options();
  options.jobs = 3;
  Compilers compilers(options);
  if (const std::string why = missing(compilers, host()); !why.empty()) BROACH_SKIP(why);
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 9; ++i) {
    threads.emplace_back([&, i] {
      const auto output = compilers.compile(tiny_plan(host(), std::to_string(i)));
      if (output) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 9);
  const std::size_t workers = worker_pids().size();
  CHECK(workers >= 2);
  CHECK(workers <= 3);
}

TEST_CASE("workers end with the compilers that started them", "[specializer][compile]") {
  {
    Compilers compilers(compilers_options());
    if (const std::string why = missing(compilers, host()); !why.empty()) BROACH_SKIP(why);
    CHECK(worker_pids().size() == 1);
  }
  CHECK(worker_pids().empty());
}

TEST_CASE("a worker outlives the thread that started it", "[specializer][compile]") {
  Compilers compilers(compilers_options());
  std::string why;
  std::thread([&] { why = missing(compilers, host()); }).join();
  if (!why.empty()) BROACH_SKIP(why);
  const auto before = worker_pids();
  CHECK(compilers.compile(tiny_plan(host())));
  CHECK(worker_pids() == before);
}

TEST_CASE("nothing is started before it is asked for", "[specializer][compile]") {
  const Compilers compilers(compilers_options());
  CHECK(worker_pids().empty());
}
