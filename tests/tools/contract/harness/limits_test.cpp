// Gate 5 with each of its statements altered in turn: the object, the index, the chip, the device.
#include "tools/contract/harness/limits.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/compose.hpp"
#include "specializer/target.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/opened_runtime.hpp"
#include "tools/contract/families.hpp"
#include "tools/contract/harness/contract.hpp"
#include "tools/contract/harness/findings.hpp"
#include "tools/contract/harness/limit_checks.hpp"
#include "tools/contract/harness/limits_scope.hpp"
#include "tools/contract/harness/report.hpp"
#include "tools/contract/window_rows/limit_kernels.hpp"

using namespace broach;
using namespace broach::contract;
using namespace broach::contract::window_rows;

namespace {

constexpr std::string_view kPart = "broach_window_rows_chunk256_partial";

WindowRowsShape small_shape() {
  WindowRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  shape.window = 512;
  shape.arith = Arith::kChunk256;
  return shape;
}

LimitRun limits_on(const Bench& bench, const std::string& target,
                   std::vector<Toolchain> toolchains = {}, runtime::Device* device = nullptr) {
  LimitRequest request;
  request.toolchains = std::move(toolchains);
  if (request.toolchains.empty()) request.toolchains = {{"", bench.forge}};
  request.scopes = {{target, {limit_kernel(small_shape())}}};
  request.device = device;
  return check_limits(request);
}

LimitReport report_of(const Bench& bench, const std::string& target,
                      runtime::Device* device = nullptr) {
  LimitRun run = limits_on(bench, target, {}, device);
  REQUIRE(run.targets.size() == 1);
  return std::move(run.targets.front());
}

bool holds(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

/// Whether some problem holds the words, and all of them when there are several.
bool has_problem(const LimitReport& report, std::string_view words) {
  return std::any_of(report.problems.begin(), report.problems.end(),
                     [&](const std::string& problem) { return holds(problem, words); });
}

/// A host runtime whose cache has the small kernel's binary, and its object.
struct Made {
  test::OpenedRuntime host{"host"};
  cache::Object object;
  std::string target;

  Made() {
    REQUIRE(host.runtime);
    target = host.bench.device->target().name;
    auto plan = specializer::plan(small_shape(), host.bench.device->target());
    REQUIRE(plan);
    auto artifact = host.bench.forge->obtain(*plan, specializer::OnMiss::kCompile);
    if (!artifact) FAIL(artifact.error().message << artifact.error().detail);
    object = *artifact->object;
    REQUIRE_FALSE(object.limits.empty());
  }

  /// What gate 5 says where the cache has the object as it was changed.
  LimitReport report_of_changed(void (*change)(LaunchLimits& limits)) const {
    const test::OpenedRuntime other("host");
    REQUIRE(other.runtime);
    cache::Object changed = object;
    change(changed.limits.front());
    other.bench.forge->cache().publish(std::move(changed));
    return report_of(other.bench, target);
  }
};

/// The host, whose functions state a register more and 16 threads fewer than they have.
class OtherwiseDevice final : public runtime::Device {
 public:
  explicit OtherwiseDevice(runtime::Device& real) : real_(real) {}

  std::string_view name() const override { return "a chip that says otherwise"; }
  std::string_view driver() const override { return real_.driver(); }
  const specializer::Target& target() const override { return real_.target(); }
  Result<std::unique_ptr<runtime::Module>> load(std::span<const std::byte> binary,
                                                std::span<const std::string> functions) override {
    auto module = real_.load(binary, functions);
    if (!module) return module.error();
    return std::unique_ptr<runtime::Module>(std::make_unique<OtherModule>(*std::move(module)));
  }
  Result<bool> capturing(runtime::Stream stream) override { return real_.capturing(stream); }
  Result<void*> allocate(std::size_t bytes) override { return real_.allocate(bytes); }
  void free(void* memory) noexcept override { real_.free(memory); }
  Result<void> copy_to_device(void* to, const void* from, std::size_t bytes) override {
    return real_.copy_to_device(to, from, bytes);
  }
  Result<void> copy_to_host(void* to, const void* from, std::size_t bytes) override {
    return real_.copy_to_host(to, from, bytes);
  }
  Result<void> synchronize(runtime::Stream stream) override { return real_.synchronize(stream); }

 private:
  class OtherFunction final : public runtime::Function {
   public:
    explicit OtherFunction(const runtime::Function* real) : real_(real) {}
    Result<void> launch(const runtime::LaunchConfig& config) const override {
      return real_->launch(config);
    }
    Result<LaunchLimits> live_limits() const override {
      auto limits = real_->live_limits();
      if (limits && limits->max_threads) *limits->max_threads -= 16;
      return limits;
    }

   private:
    const runtime::Function* real_;
  };

  class OtherModule final : public runtime::Module {
   public:
    explicit OtherModule(std::unique_ptr<runtime::Module> real) : real_(std::move(real)) {}
    Result<const runtime::Function*> function(std::string_view name) override {
      auto found = real_->function(name);
      if (!found) return found.error();
      functions_.push_back(std::make_unique<OtherFunction>(*found));
      return functions_.back().get();
    }

   private:
    std::unique_ptr<runtime::Module> real_;
    std::vector<std::unique_ptr<OtherFunction>> functions_;
  };

  runtime::Device& real_;
};

}  // namespace

TEST_CASE("a target that the compiler does not know is not compiled and no problem",
          "[contract][limits]") {
  const test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  const bool on_arm = specializer::native_host_target() == "host-aarch64";
  const LimitReport report = report_of(host.bench, on_arm ? "host-x86-64-v3" : "host-aarch64");
  const std::string line = line_of(report);
  INFO(line);
  CHECK(report.problems.empty());
  CHECK(report.binaries == 0);
  CHECK(line.starts_with("skip " + report.target + ": not compiled here: "));
  CHECK_FALSE(holds(line, "\n"));
}

TEST_CASE("a target that nobody knows is a problem", "[contract][limits]") {
  const test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  const LimitReport report = report_of(host.bench, "sm_999");
  CHECK(has_problem(report, "target \"sm_999\" is not known"));
}

TEST_CASE("limits that agree are no problem, and the device is asked for its own",
          "[contract][limits]") {
  const Made made;
  const LimitReport report = report_of(made.host.bench, made.target, made.host.bench.device);
  CHECK(report.problems.empty());
  CHECK(report.binaries == 1);
  CHECK(report.compiled == 0);
  CHECK(report.functions == made.object.limits.size());
  CHECK(report.live == report.functions);
  CHECK(line_of(report).starts_with("pass "));
}

TEST_CASE("an object whose limits are not its binary's is a problem", "[contract][limits]") {
  const LimitReport report = Made().report_of_changed(
      [](LaunchLimits& limits) { limits.static_shared = limits.static_shared.value_or(0) + 16; });
  REQUIRE(report.problems.size() == 1);
  CHECK(has_problem(report, "its binary read again differ: static_shared"));
  CHECK(line_of(report).starts_with("FAIL "));
}

TEST_CASE("a row of the index that was altered is a problem", "[contract][limits]") {
  const Made made;
  {
    SQLite::Database index((made.host.dir.path() / "index.sqlite3").string(),
                           SQLite::OPEN_READWRITE);
    REQUIRE(index.exec("UPDATE launch_limit SET static_shared = static_shared + 16 WHERE "
                       "function = 'broach_window_rows_chunk256_partial'") == 1);
  }
  const LimitReport report = report_of(made.host.bench, made.target);
  REQUIRE(report.problems.size() == 1);
  CHECK(has_problem(report, "the object and the index differ: static_shared"));
}

TEST_CASE("a row that the index lost is a problem", "[contract][limits]") {
  const Made made;
  {
    SQLite::Database index((made.host.dir.path() / "index.sqlite3").string(),
                           SQLite::OPEN_READWRITE);
    REQUIRE(
        index.exec(
            "DELETE FROM launch_limit WHERE function = 'broach_window_rows_chunk256_partial'") ==
        1);
  }
  CHECK(has_problem(report_of(made.host.bench, made.target),
                    "broach_window_rows_chunk256_partial is not in the index"));
}

TEST_CASE("a limit that does not fit the chip is a problem", "[contract][limits]") {
  const LimitReport report =
      Made().report_of_changed([](LaunchLimits& limits) { limits.static_shared = 300'000; });
  CHECK(has_problem(report, "exceed the chip's limit of 232,448 a block"));
}

TEST_CASE("a spill that no finding explains is a problem", "[contract][limits]") {
  const LimitReport report =
      Made().report_of_changed([](LaunchLimits& limits) { limits.spill_bytes = 16; });
  REQUIRE(report.problems.size() == 1);
  CHECK(has_problem(report, "spills 16 bytes, and no known finding says why"));
}

TEST_CASE("a live device that reports otherwise is a problem", "[contract][limits]") {
  const Made made;
  OtherwiseDevice device(*made.host.bench.device);
  const LimitReport report = report_of(made.host.bench, made.target, &device);
  CHECK(report.problems.size() == made.object.limits.size());
  CHECK(has_problem(report, "the object and the live device differ: max_threads"));

  // What it said is recorded, and holds without it.
  CHECK(has_problem(report_of(made.host.bench, made.target), "the live device differ"));
}

TEST_CASE("a known spill has a bound, a function and targets", "[contract][limits]") {
  const std::vector<Finding> findings = limit_kernel(small_shape(), {"", Switch::kOn}).findings;
  const Spill scalars{0, 0, 20};
  const Finding* const known = known_spill(findings, "gfx90a", kPart, scalars);
  REQUIRE(known != nullptr);
  CHECK_FALSE(known->why.empty());
  CHECK(known_spill(findings, "gfx1100", kPart, scalars) == nullptr);
  CHECK(known_spill(findings, "gfx90a", "broach_window_rows_chunk256_combine", scalars) == nullptr);
  CHECK(known_spill(findings, "gfx90a", kPart, {4, 0, 20}) == nullptr);
  CHECK(known_spill(findings, "gfx90a", kPart, {0, 0, 65'000}) == nullptr);
  for (const ContractFamily* const family : families()) {
    for (const Finding& finding : family->findings()) CHECK(finding.most.any());
  }
}

TEST_CASE("every family's known spills reach the kernels that it has compiled",
          "[contract][limits]") {
  for (const ContractFamily* const family : families()) {
    INFO(family->name());
    const std::vector<LimitKernel> kernels = family->limit_kernels(LimitDepth::kEvery);
    for (const Finding& finding : family->findings()) {
      INFO(finding.function << " on " << finding.targets);
      CHECK_FALSE(finding.why.empty());
      const std::string target = std::string(finding.targets) + "0";
      const auto knows = [&](const Spill& spill) {
        return std::any_of(kernels.begin(), kernels.end(), [&](const LimitKernel& kernel) {
          return known_spill(kernel.findings, target, finding.function, spill) != nullptr;
        });
      };
      CHECK(knows(finding.most));
      CHECK_FALSE(knows({finding.most.bytes + 4096, 1024, 1024}));
    }
  }
}

TEST_CASE("a known spill belongs to the kernels that show it", "[contract][limits]") {
  WindowRowsShape shape = small_shape();
  const auto shows = [&](const specializer::Variant& variant = {}) {
    const LimitKernel kernel = limit_kernel(shape, variant);
    return known_spill(kernel.findings, "sm_90a", "broach_window_rows_tile64_prefill",
                       {20, 0, 0}) != nullptr;
  };
  CHECK_FALSE(shows());
  shape.form = Form::kPrefill;
  shape.arith = Arith::kTile64;
  shape.head_dim = 128;
  CHECK(shows());
  CHECK_FALSE(shows({"", Switch::kOn}));
  shape.p32 = Switch::kOn;
  CHECK_FALSE(shows());
}

TEST_CASE("what toolchains need differently is a line and a row each", "[contract][limits]") {
  LaunchLimits before;
  before.function = "broach_window_rows_chunk256_partial";
  before.registers = 64;
  before.sgprs = 40;
  LaunchLimits after = before;
  after.registers = 60;
  LimitReport first;
  first.target = "gfx90a";
  first.compiler = "hiprtc 5.2";
  first.limits = {{R"({"head_dim":64})", {before}}, {R"({"head_dim":80})", {before}}};
  LimitReport second = first;
  second.compiler = "hiprtc 6.4";
  second.limits[0].functions = {after};
  LimitReport other = second;
  other.target = "gfx942";
  const auto found = toolchain_differences({first, second, other});
  REQUIRE(found.size() == 1);
  CHECK(line_of(found.front()) ==
        "differs gfx90a: broach_window_rows_chunk256_partial by hiprtc 5.2 and hiprtc 6.4: "
        "registers 64 and "
        "60: {\"head_dim\":64}");
  LimitRun run;
  run.differences = found;
  const auto row = to_json(run)["toolchain_differences"][0];
  CHECK(row["before"] == "hiprtc 5.2");
  CHECK(row["shape"]["head_dim"] == 64);
  CHECK(row["fields"][0]["field"] == "registers");
  CHECK(row["fields"][0]["before"] == 64);
  CHECK(row["fields"][0]["after"] == 60);
}

TEST_CASE("a compiler's statement covers chips, and leaves their own and family targets open",
          "[contract][limits]") {
  CompilerReport nvrtc;
  nvrtc.stated = {"sm_90", "sm_100"};
  const auto says = [](const CompilerReport& report, std::string_view name) {
    return report.states(*specializer::parse_target(name));
  };
  CHECK(says(nvrtc, "sm_90") == States::kYes);
  CHECK(says(nvrtc, "sm_90a") == States::kUnknown);
  CHECK(says(nvrtc, "sm_100f") == States::kUnknown);
  CHECK(says(nvrtc, "sm_121f") == States::kNo);
  CompilerReport hiprtc;
  hiprtc.vendor = specializer::Vendor::kAmd;
  CHECK(says(hiprtc, "gfx90a") == States::kUnknown);
  hiprtc.stated = {"gfx90a"};
  CHECK(says(hiprtc, "gfx90a:xnack-") == States::kYes);
  CHECK(says(hiprtc, "gfx942") == States::kNo);
}

TEST_CASE("two hiprtcs' binaries of one kernel lie side by side in a cache", "[contract][limits]") {
  const test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  Options options = Options::from_environment();
  options.hiprtc_prefix.clear();
  const char* named = std::getenv("BROACH_HIPRTC_PREFIX");
  Options newer = options;
  newer.hiprtc_prefix = named != nullptr && *named != '\0' ? named : BROACH_TEST_HIPRTC_PREFIX;
  specializer::Forge system = runtime::forge_beside(*host.bench.forge, options);
  specializer::Forge prefix = runtime::forge_beside(*host.bench.forge, newer);
  const auto target = specializer::parse_target("gfx90a");
  for (specializer::Forge* const forge : {&system, &prefix}) {
    auto identity = forge->compilers().identity(*target);
    if (!identity) BROACH_SKIP(identity.error().message);
  }
  const LimitRun run = limits_on(host.bench, "gfx90a", {{"system", &system}, {"prefix", &prefix}});
  REQUIRE(run.targets.size() == 2);
  for (const LimitReport& report : run.targets) {
    INFO(line_of(report));
    CHECK(report.problems.empty());
    CHECK(report.binaries == 1);
  }
  REQUIRE(run.compilers.size() == 2);
  CHECK(run.compilers[0].words != run.compilers[1].words);
  auto entries = host.bench.forge->cache().entries();
  REQUIRE(entries);
  CHECK(std::count_if(entries->begin(), entries->end(), [](const cache::Entry& entry) {
          return entry.description.target == "gfx90a";
        }) == 2);
}

TEST_CASE("a hiprtc that is not there is a line, not a failure", "[contract][limits]") {
  const test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  Options options = Options::from_environment();
  options.hiprtc_prefix = (host.dir.path() / "nothing").string();
  specializer::Forge missing = runtime::forge_beside(*host.bench.forge, options);
  const LimitRun run = limits_on(host.bench, "gfx90a", {{"prefix", &missing}});
  REQUIRE(run.targets.size() == 1);
  CHECK(run.targets.front().problems.empty());
  CHECK_FALSE(run.targets.front().not_compiled.empty());
  REQUIRE(run.compilers.size() == 1);
  CHECK(line_of(run.compilers.front()).starts_with("no compiler for AMD targets (prefix): "));
  CHECK(holds(words_of(run), "no hiprtc"));
}

namespace {

using Names = std::set<std::string, std::less<>>;

Names kinds_of(const LimitScope& scope) {
  Names kinds;
  for (const LimitKernel& kernel : scope.kernels) kinds.insert(kernel.kind);
  return kinds;
}

/// What of a chip decides which kernels it has.
using Generation = std::tuple<specializer::Vendor, specializer::MmaStep, std::uint32_t>;

Generation generation_of(std::string_view name) {
  const auto target = specializer::parse_target(name);
  REQUIRE(target);
  return {target->vendor, target->mma_step, target->warp_width};
}

}  // namespace

TEST_CASE("either sweep compiles for every target, and every arithmetic and form",
          "[contract][limits]") {
  for (const Sweep sweep : {Sweep::kQuick, Sweep::kWhole}) {
    const auto scopes = limit_scopes(families(), sweep, LimitTargets::kEvery);
    const auto known = specializer::known_targets();
    REQUIRE(scopes.size() == known.size());
    for (std::size_t i = 0; i < scopes.size(); ++i) {
      CHECK(scopes[i].target == known[i]);
      REQUIRE_FALSE(scopes[i].kernels.empty());
      if (sweep == Sweep::kQuick && scopes[i].target != "sm_90a") continue;
      const Names kinds = kinds_of(scopes[i]);
      for (const std::string_view kind :
           {"decode chunk256", "decode tile64", "prefill tile64", "prefill mma32"}) {
        CHECK(kinds.contains(kind));
      }
    }
  }
}

TEST_CASE("one chip a generation leaves no generation, family or kind of kernel out",
          "[contract][limits]") {
  std::set<Generation> everywhere;
  for (const std::string_view name : specializer::known_targets()) {
    everywhere.insert(generation_of(name));
  }
  Names every_kind;
  for (const LimitKernel& kernel : deepest_kernels(families(), Sweep::kWhole)) {
    every_kind.insert(kernel.kind);
  }
  const auto scopes = limit_scopes(families(), Sweep::kQuick, LimitTargets::kGenerations);
  CHECK(scopes.size() < specializer::known_targets().size() / 2);
  std::set<Generation> generations;
  Names kinds;
  for (const LimitScope& scope : scopes) {
    generations.insert(generation_of(scope.target));
    kinds.merge(kinds_of(scope));
    for (const ContractFamily* const family : families()) {
      const std::vector<LimitKernel> own = family->limit_kernels(LimitDepth::kOneOfEach);
      REQUIRE_FALSE(own.empty());
      CHECK(kinds_of(scope).contains(own.front().kind));
    }
  }
  CHECK(generations == everywhere);
  CHECK(kinds == every_kind);
}

TEST_CASE("what gate 5 leaves out is counted", "[contract][limits]") {
  LimitRequest request;
  for (const LimitScope& scope :
       limit_scopes(families(), Sweep::kQuick, LimitTargets::kGenerations)) {
    request.scopes.push_back({scope.target, {}});
  }
  const std::size_t known = specializer::known_targets().size();
  const LimitRun run = check_limits(request);
  CHECK(run.left_out == known - request.scopes.size());
  CHECK(holds(words_of(run), fmt::format("{} of {} targets left out", run.left_out, known)));
  CHECK(to_json(run)["targets_left_out"] == run.left_out);

  request.scopes.clear();
  for (const std::string_view name : specializer::known_targets()) {
    request.scopes.push_back({std::string(name), {}});
  }
  CHECK_FALSE(holds(words_of(check_limits(request)), "left out"));
}
