#include <cstdlib>

#include "specializer/limits.hpp"
#include "specializer/plan.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;

/// A prefix that tools/fetch-hiprtc filled: BROACH_HIPRTC_PREFIX, or its default place.
std::filesystem::path hiprtc_prefix() {
  const char* named = std::getenv("BROACH_HIPRTC_PREFIX");
  const std::filesystem::path prefix =
      named != nullptr && *named != '\0' ? named : BROACH_TEST_HIPRTC_PREFIX;
  return std::filesystem::exists(prefix / "usr") ? prefix : std::filesystem::path();
}

}  // namespace

TEST_CASE("a compiler that aborts becomes an error with target, version and advice",
          "[specializer][compile]") {
  // hiprtc aborts on an architecture that its comgr does not know.
  Compilers compilers(compilers_options());
  const auto identity = compilers.identity(amd("gfx1151"));
  if (!identity) BROACH_SKIP(identity.error().message);
  const auto before = worker_pids();
  const auto output = compilers.compile(tiny_plan(amd("gfx1151")));
  if (output) BROACH_SKIP(identity->words + " knows gfx1151");
  INFO(output.error().message << "\n" << output.error().detail);
  CHECK(output.error().code == ErrorCode::kCompilerDied);
  CHECK(contains(output.error().message, "gfx1151"));
  CHECK(contains(output.error().message, identity->words));
  CHECK(contains(output.error().message, "ended by signal"));  // Its heap is broken by then.
  CHECK(contains(output.error().message, "does not know gfx1151"));
  CHECK(contains(output.error().message, "BROACH_HIPRTC_PREFIX"));
  CHECK_FALSE(output.error().detail.empty());
  // This process lives, and the next compile has a fresh worker.
  CHECK(compilers.compile(tiny_plan(amd("gfx90a"))));
  CHECK(worker_pids() != before);
}

TEST_CASE("a hiprtc in another prefix runs on that prefix's loader and knows newer chips",
          "[specializer][compile]") {
  auto options = compilers_options();
  options.hiprtc_prefix = hiprtc_prefix();
  if (options.hiprtc_prefix.empty()) BROACH_SKIP("no hiprtc prefix; tools/fetch-hiprtc makes one");
  CountingMemo memo;
  Compilers compilers(options, memo.memo());
  for (const char* arch :
       {"gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1151", "gfx1201"}) {
    const auto output = compilers.compile(tiny_plan(amd(arch)));
    INFO(arch << ": " << (output ? "" : output.error().message + "\n" + output.error().detail));
    REQUIRE(output);
    const std::string bytes(reinterpret_cast<const char*>(output->binary.data()),
                            output->binary.size());
    CHECK(contains(bytes, "tiny"));
    CHECK(contains(bytes, arch));
  }
  const auto identity = compilers.identity(amd("gfx942"));
  REQUIRE(identity);
  CHECK(contains(identity->path, options.hiprtc_prefix.string()));
  CHECK_FALSE(contains(identity->key_text, "/"));
  CHECK(memo.values.size() == 1);
  const auto output = compilers.compile(tiny_plan(amd("gfx942"), "no_such_name"));
  REQUIRE_FALSE(output);
  INFO(output.error().message);
  CHECK(output.error().code == ErrorCode::kCompileFailed);
  CHECK(contains(output.error().message, "main.cu"));
}

TEST_CASE("hiprtc finds its device libraries", "[specializer][compile]") {
  auto options = compilers_options();
  const bool newer = GENERATE(false, true);
  if (newer) options.hiprtc_prefix = hiprtc_prefix();
  Compilers compilers(options);
  const auto identity = compilers.identity(amd("gfx90a"));
  if (!identity || (newer && options.hiprtc_prefix.empty())) BROACH_SKIP("no such hiprtc");
  const auto output = compilers.compile(
      tiny_plan(amd("gfx90a"), "int(fmaf(sqrtf(float(*out)), expf(1.0f / *out), 1.0f))"));
  INFO(identity->words << (output ? "" : output.error().message + "\n" + output.error().detail));
  CHECK(output);
}

TEST_CASE("both hiprtcs compile a kernel, with limits that read", "[specializer][compile]") {
  auto options = compilers_options();
  const bool newer = GENERATE(false, true);
  if (newer) options.hiprtc_prefix = hiprtc_prefix();
  Compilers compilers(options);
  const auto identity = compilers.identity(amd("gfx90a"));
  if (!identity || (newer && options.hiprtc_prefix.empty())) BROACH_SKIP("no such hiprtc");
  WindowRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  shape.window = 512;
  const auto made = plan(shape, *parse_target("gfx90a"));
  REQUIRE(made);
  const auto output = compilers.compile(*made);
  INFO(identity->words << (output ? "" : output.error().message + "\n" + output.error().detail));
  REQUIRE(output);
  const auto limits = read_limits(*made, output->binary, output->log);
  REQUIRE(limits);
  CHECK(limits->size() == made->entries.size());
}

TEST_CASE("the system's hiprtc and a prefix's are two compilers", "[specializer][identity]") {
  auto options = compilers_options();
  Compilers system(options);
  options.hiprtc_prefix = hiprtc_prefix();
  if (options.hiprtc_prefix.empty()) BROACH_SKIP("no hiprtc prefix; tools/fetch-hiprtc makes one");
  Compilers prefix(options);
  const auto first = system.identity(amd("gfx90a"));
  const auto second = prefix.identity(amd("gfx90a"));
  REQUIRE(second);
  if (!first) BROACH_SKIP(first.error().message);
  INFO(first->key_text << " and " << second->key_text);
  CHECK(first->key_text != second->key_text);
}
