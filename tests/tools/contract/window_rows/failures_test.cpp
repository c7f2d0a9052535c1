#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specializer/plan.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/opened_runtime.hpp"
#include "tests/tools/program.hpp"
#include "tools/contract/harness/contract.hpp"
#include "tools/contract/harness/report.hpp"
#include "tools/contract/window_rows/controls.hpp"
#include "tools/contract/window_rows/family.hpp"
#include "tools/contract/window_rows/gates.hpp"
#include "tools/contract/window_rows/unit_weights.hpp"

using namespace broach;
using namespace broach::contract;
using namespace broach::contract::window_rows;

namespace {

constexpr std::string_view kFault = "rescale_dropped";

const PlantedFault& fault_named(std::string_view name) {
  const auto faults = planted_faults();
  const auto found = std::find_if(faults.begin(), faults.end(),
                                  [&](const PlantedFault& one) { return one.name == name; });
  REQUIRE(found != faults.end());
  return *found;
}

specializer::Plan plan_of(const Bench& bench, const WindowRowsShape& shape,
                          const std::string& control) {
  auto plan = specializer::plan(shape, bench.device->target(), {control, Switch::kOff});
  REQUIRE(plan);
  return *std::move(plan);
}

cache::Object object_of(const Bench& bench, const specializer::Plan& plan) {
  auto artifact = bench.forge->obtain(plan, specializer::OnMiss::kCompile);
  if (!artifact) FAIL(artifact.error().message << artifact.error().detail);
  return *artifact->object;
}

/// Lets the cache serve one kernel's binary under another's key.
void exchange(const Bench& bench, const specializer::Plan& binary, const specializer::Plan& key) {
  cache::Object object = object_of(bench, binary);
  auto record = bench.forge->key(key);
  REQUIRE(record);
  object.key = *record;
  bench.forge->cache().publish(std::move(object));
}

bool holds(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

test::Ended run_control(const std::filesystem::path& cache) {
  const test::TempDir home;
  return test::Program(home.path())
      .set("BROACH_CACHE_DIR", cache.string())
      .run({"contract", "--target", "host", "--only", std::string(kFault) + " (chunk256 decode)",
            "--gates", "1,2,3,4"});
}

}  // namespace

TEST_CASE("the command ends with 0 when its control is red and with 1 when it is missed",
          "[contract][controls]") {
  const test::TempDir empty;
  const test::Ended red = run_control(empty.path());
  INFO(red.err);
  CHECK(red.status == 0);
  CHECK(holds(red.out, "1 controls: 1 red as planted, 0 missed"));
  CHECK_FALSE(holds(red.err, "\\n"));

  const test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  const WindowRowsShape shape = control_case(fault_named(kFault)).recipe.shape;
  exchange(host.bench, plan_of(host.bench, shape, ""),
           plan_of(host.bench, shape, std::string(kFault)));
  const test::Ended missed = run_control(host.dir.path());
  CHECK(missed.status == 1);
  CHECK(holds(missed.out, "MISSED rescale_dropped (chunk256 decode), gate 3: stayed green\n"));
  CHECK(holds(missed.out, "1 controls: 0 red as planted, 1 missed"));
}

TEST_CASE("a gate that fails names the case and the first output that is wrong",
          "[contract][gates]") {
  const test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  CaseSpec one = control_case(fault_named(kFault));
  one.name = "a case with a faulty binary";
  one.twins = Twins::kGenericAndForm;
  exchange(host.bench, plan_of(host.bench, one.recipe.shape, std::string(kFault)),
           plan_of(host.bench, one.recipe.shape, ""));
  ContractRequest request;
  request.cases = {case_of(one)};
  const ContractReport report = run_contract(host.bench, request);
  CHECK_FALSE(report.passed());
  CHECK(report.failed() == 1);
  const std::string failures = failures_of(report);
  INFO(failures);
  CHECK(failures.starts_with("FAIL a case with a faulty binary: "));
  CHECK(holds(failures, "gate 3 (shapes): a case with a faulty binary: "));
  CHECK(holds(failures, "; first: row 0 head 0 dim 0: "));
  CHECK(holds(summary_of(report), "0 pass gates 1-4, 1 fail"));
}

TEST_CASE("tiles folded in the wrong order turn the sums red whatever the device would pick",
          "[contract][controls]") {
  const test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  const CaseSpec one = control_case(fault_named("combine_reversed"));
  auto kernel = contract::window_rows::Kernel::load(host.bench, one.recipe.shape,
                                                    {"combine_reversed", Switch::kOff});
  REQUIRE(kernel);
  const GateReport sums = gate_sums({&*kernel, &one, {nullptr, {}, 1}});
  std::string failures;
  for (const std::string& failure : sums.failures) failures += failure + "\n";
  INFO(failures);
  CHECK(holds(failures, "combined by the last CTA: "));
  CHECK(holds(failures, "combined by a second kernel: "));
}

TEST_CASE("a neighbour that is computed again in float64 shows whatever the device would pick",
          "[contract][rerun]") {
  const test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  // As the host launches it, and as a chip of 132 multiprocessors does.
  const auto spread = GENERATE(0U, 132U);
  for (const PlantedFault& control : planted_faults()) {
    if (control.name != std::string_view("whole_block_rerun")) continue;
    if (control.form == Form::kPrefill && spread > 0) continue;  // It has one way to be launched.
    const CaseSpec one = control_case(control);
    INFO(one.name << " over " << spread);
    auto faulty = contract::window_rows::Kernel::load(host.bench, one.recipe.shape,
                                                      {"whole_block_rerun", Switch::kOff}, spread);
    REQUIRE(faulty);
    const GateReport gate = gate_nonfinite({&*faulty, &one, {nullptr, {}, 1}});
    std::string failures;
    for (const std::string& failure : gate.failures) failures += failure + "\n";
    INFO(failures);
    CHECK(holds(failures, "beside sums that cancel: row "));

    // By construction: nearly every output of the sound kernel has other bits than float64's.
    auto sound = contract::window_rows::Kernel::load(host.bench, one.recipe.shape, {}, spread);
    REQUIRE(sound);
    auto problem = make_problem(one.recipe);
    REQUIRE(problem);
    set_keys_to_zero(*problem);
    set_values_cancelling(*problem);
    auto out = sound->run(*problem);
    REQUIRE(out);
    const Apart told = apart_from_float64(*problem, *out);
    CHECK(told.outputs == problem->shape.head_dim * static_cast<std::uint64_t>(problem->rows) *
                              static_cast<std::uint64_t>(problem->heads()));
    CHECK(told.apart * 10 > told.outputs * 9);
  }
}
