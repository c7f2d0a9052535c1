#include "specializer/forge.hpp"

#include <regex>

#include "specializer/options.hpp"
#include "specializer/sources.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::specializer {
namespace {

// A real kernel on the embedded headers, with the options that plans have.
Plan doubling_plan(std::string_view target_name, const std::string& value = "2.0f * *params.x") {
  Plan plan;
  plan.family = "doubling";
  plan.target = *parse_target(target_name);
  plan.shape_json = "{}";
  plan.parameters = {{"value", value}};
  const std::string main =
      "#include \"common/platform.cuh\"\n"
      "struct DoublingParams { float* x; };\n"
      "BROACH_GLOBAL(broach_doubling, 96, DoublingParams, broach::NoShared) {\n"
      "  if (thread.index() == 0) *params.x = " +
      value + ";\n}\n";
  plan.sources = *close_over_includes("main.cu", main, plan.target.vendor, embedded_sources());
  plan.options = compiler_options(plan.target);
  plan.entries = {{"broach_doubling", 96, 0}};
  plan.kind = plan.target.vendor == Vendor::kNvidia ? ArtifactKind::kCubin
              : plan.target.vendor == Vendor::kAmd  ? ArtifactKind::kCodeObject
                                                    : ArtifactKind::kHostSharedObject;
  return plan;
}

Forge open_forge(const std::filesystem::path& directory) {
  cache::CacheOptions options;
  options.directories = {directory};
  options.notice = [](std::string_view) {};
  return Forge(cache::Cache::open(options), std::make_shared<Compilers>(test::compilers_options()));
}

}  // namespace

TEST_CASE("a kernel of one source is compiled for each vendor, read, and found again",
          "[specializer][forge]") {
  const std::string target = GENERATE("host", "sm_90a", "sm_121a", "gfx90a");
  INFO(target);
  const test::TempDir dir;
  const Plan plan = doubling_plan(target);
  Forge forge = open_forge(dir.path());
  const auto key = forge.key(plan);
  if (!key) BROACH_SKIP(key.error().message);
  const auto made = forge.obtain(plan, OnMiss::kCompile);
  INFO((made ? "" : made.error().message + made.error().detail));
  REQUIRE(made);
  CHECK(made->compiled);
  CHECK(made->object->key == *key);
  REQUIRE(made->object->limits.size() == 1);
  const LaunchLimits& limits = made->object->limits.front();
  CHECK(limits.function == "broach_doubling");
  CHECK(limits.max_threads == 96);
  CHECK(limits.launch_bounds == 96);
  CHECK(limits.static_shared <= 1U);  // An empty struct is a byte on the host.
  if (plan.target.vendor != Vendor::kHost) CHECK(limits.spill_bytes == 0);

  // Another process would see this: a new cache on the same directory.
  Forge again = open_forge(dir.path());
  const auto found = again.obtain(plan, OnMiss::kRefuse);
  REQUIRE(found);
  CHECK_FALSE(found->compiled);
  CHECK(found->layer.kind == cache::LayerKind::kUser);
  CHECK(*found->object == *made->object);
}

TEST_CASE("a decode's recorded limits are those that ptxas wrote into the same compile's log",
          "[specializer][forge][limits]") {
  const std::string target = GENERATE("sm_80", "sm_90a", "sm_121a");
  WindowRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  shape.window = 1024;
  shape.kv_layout = {KvLayoutKind::kRing, 1536};
  const auto made = plan(shape, *parse_target(target));
  REQUIRE(made);
  const test::TempDir dir;
  Forge forge = open_forge(dir.path());
  const auto artifact = forge.obtain(*made, OnMiss::kCompile);
  if (!artifact && artifact.error().code == ErrorCode::kCompilerMissing) {
    BROACH_SKIP(artifact.error().message);
  }
  INFO((artifact ? "" : artifact.error().message + artifact.error().detail));
  REQUIRE(artifact);
  const cache::Object& object = *artifact->object;
  const std::string& log = object.provenance.log;
  REQUIRE(object.limits.size() == made->entries.size());
  for (std::size_t i = 0; i < object.limits.size(); ++i) {
    const LaunchLimits& row = object.limits[i];
    INFO(target << ' ' << row.function);
    const std::size_t at = log.find("Compiling entry function '" + row.function + "'");
    REQUIRE(at != std::string::npos);
    std::smatch found;
    const std::string part = log.substr(at, log.find("Compile time", at) - at);
    REQUIRE(std::regex_search(part, found, std::regex("(\\d+) bytes spill stores")));
    CHECK(row.spill_bytes == std::stoul(found[1]));
    REQUIRE(std::regex_search(part, found, std::regex("Used (\\d+) registers")));
    CHECK(row.registers == std::stoul(found[1]));
    const bool shared = std::regex_search(part, found, std::regex("(\\d+) bytes smem"));
    CHECK(row.static_shared == (shared ? std::stoul(found[1]) : 0));
    CHECK(row.launch_bounds == made->entries[i].block_threads);
    CHECK(row.max_threads >= made->entries[i].block_threads);
    CHECK(row.source == "cubin");
  }
}

TEST_CASE("a source that a compiler rejects fails with its log, and is not tried again",
          "[specializer][forge]") {
  const test::TempDir dir;
  Forge forge = open_forge(dir.path());
  const Plan plan = doubling_plan("host", "no_such_name");
  const auto first = forge.obtain(plan, OnMiss::kCompile);
  REQUIRE_FALSE(first);
  if (first.error().code == ErrorCode::kCompilerMissing) BROACH_SKIP(first.error().message);
  CHECK(first.error().code == ErrorCode::kCompileFailed);
  CHECK(first.error().detail.find("no_such_name") != std::string::npos);
  const auto second = forge.obtain(plan, OnMiss::kCompile);
  REQUIRE_FALSE(second);
  CHECK(second.error().message.find("remembered") != std::string::npos);
}

}  // namespace broach::specializer
