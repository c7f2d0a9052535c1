#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specializer/window_rows/shape.hpp"
#include "tests/reference/chunk256.hpp"
#include "tests/reference/mma_steps.hpp"
#include "tests/reference/portable_exponential.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/opened_runtime.hpp"
#include "tools/contract/families.hpp"
#include "tools/contract/harness/contract.hpp"
#include "tools/contract/harness/report.hpp"
#include "tools/contract/window_rows/controls.hpp"
#include "tools/contract/window_rows/family.hpp"
#include "tools/contract/window_rows/gates.hpp"

using namespace broach;
using namespace broach::contract;
using namespace broach::contract::window_rows;

namespace {

using Opened = test::OpenedRuntime;

const CaseSpec& small_case() {
  static const CaseSpec kCase = [] {
    CaseSpec made = ragged_decodes()[1];  // D 64, G 8, W 32 in a ring of 48, f16.
    made.name = "six ragged rows";        // Not the whole case, whose digest is pinned.
    made.recipe.rows.resize(6);
    made.twins = Twins::kGenericAndForm;
    return made;
  }();
  return kCase;
}

Control control_named(std::string_view name) {
  const auto faults = planted_faults();
  const auto found = std::find_if(faults.begin(), faults.end(),
                                  [&](const PlantedFault& one) { return one.name == name; });
  REQUIRE(found != faults.end());
  return control_of(*found);
}

ContractRequest whole_contract(Sweep sweep) {
  const auto target = specializer::parse_target("host-x86-64-v3");
  REQUIRE(target);
  return contract_of(families(), *target, sweep);
}

// The problem's arithmetic in plain C++.
std::vector<std::uint16_t> reference_of(const Problem& problem) {
  return problem.shape.arith == Arith::kChunk256
             ? test::chunk256_reference(problem, test::portable_exponential)
             : test::mma_steps_reference(problem);
}

void check_against_reference(const Bench& bench, const CaseSpec& one) {
  INFO(one.name);
  auto problem = make_problem(one.recipe);
  REQUIRE(problem);
  auto kernel = contract::window_rows::Kernel::load(bench, one.recipe.shape);
  if (!kernel) FAIL(kernel.error().message << kernel.error().detail);
  auto out = kernel->run(*problem);
  if (!out) FAIL(out.error().message);
  CHECK(digest_of(*problem, *out) == digest_of(*problem, reference_of(*problem)));
}

}  // namespace

TEST_CASE("a small kernel passes gates 1 to 4 on the host and leaves a receipt",
          "[contract][gates]") {
  Opened host("host");
  REQUIRE(host.runtime);
  ContractRequest request;
  request.cases = {case_of(small_case())};
  const ContractReport report = run_contract(host.bench, request);
  REQUIRE(report.kernels.size() == 1);
  const KernelReport& kernel = report.kernels.front();
  INFO(line_of(kernel));
  CHECK(report.passed());
  REQUIRE(kernel.gates.size() == 4);
  for (const GateReport& gate : kernel.gates) CHECK(gate.comparisons > 0);
  CHECK(kernel.gates[0].range.nonfinite_matched > 0);
  CHECK(kernel.gates[2].range.pinned > 0);
  const auto receipts = host.runtime->state().forge.cache().receipts(kernel.key);
  REQUIRE(receipts);
  REQUIRE(receipts->size() == 1);
  CHECK(receipts->front().gates_json == receipt_json({&kernel}));
  CHECK(summary_of(report) ==
        "SUMMARY " + report.target +
            " 1 kernels: 1 pass gates 1-4, 0 fail, 0 known findings; 0 controls: 0 red as planted, "
            "0 missed; 0 limit problems");
  CHECK(to_json(report)["passed"] == true);
}

TEST_CASE("a planted fault turns its gate red, and one that is not planted is missed",
          "[contract][controls]") {
  Opened host("host");
  REQUIRE(host.runtime);
  const ControlReport early = try_control(control_named("window_early"), host.bench, 1);
  INFO(early.words);
  CHECK(early.red);
  // The same gate on the kernel without the fault stays green, which the run reports as missed.
  Control nothing = control_named("window_early");
  nothing.tried = case_of(*spec_of(*nothing.tried));
  const ControlReport missed = try_control(nothing, host.bench, 1);
  INFO(missed.words);
  CHECK_FALSE(missed.red);
  ContractReport report;
  report.controls = {early};
  CHECK(report.passed());
  report.controls.push_back(missed);
  CHECK_FALSE(report.passed());
  CHECK(report.missed() == 1);
}

TEST_CASE("every planted fault turns its gate red", "[contract][controls][slow]") {
  Opened host("host");
  REQUIRE(host.runtime);
  for (const Control& control : family().controls(host.bench.device->target())) {
    const ControlReport report = try_control(control, host.bench, 0);
    INFO(control.name << ": " << report.words);
    CHECK(report.red);
  }
}

TEST_CASE("a wrong digest and a foreign bit fail the shapes gate", "[contract][gates]") {
  Opened host("host");
  REQUIRE(host.runtime);
  auto kernel = contract::window_rows::Kernel::load(host.bench, small_case().recipe.shape);
  REQUIRE(kernel);
  auto problem = make_problem(small_case().recipe);
  REQUIRE(problem);
  auto out = kernel->run(*problem);
  REQUIRE(out);
  const std::string digest = digest_of(*problem, *out);
  CaseSpec one = small_case();
  CHECK(gate_shapes({&*kernel, &one, {nullptr, digest, 1}}).passed);
  std::string wrong = digest;
  wrong[0] = wrong[0] == '0' ? '1' : '0';
  CHECK_FALSE(gate_shapes({&*kernel, &one, {nullptr, wrong, 1}}).passed);

  std::vector<std::int32_t> same;
  for (std::int32_t row = 0; row < problem->rows; ++row) same.push_back(row);
  CHECK(difference(*problem, *out, *problem, *out, same).empty());
  auto other = *out;
  other[3] ^= 1;
  CHECK_FALSE(difference(*problem, other, *problem, *out, same).empty());
  CHECK(digest_of(*problem, other) != digest);
}

TEST_CASE("the host's kernel has the bits of the arithmetic in plain C++",
          "[contract][reference]") {
  Opened host("host");
  REQUIRE(host.runtime);
  check_against_reference(host.bench, small_case());
  check_against_reference(host.bench, ragged_decodes()[2]);  // D 80 has absent lanes.
  for (CaseSpec tiles : {ragged_decodes(Arith::kTile64)[1], ragged_prefills(Arith::kTile64)[1],
                         ragged_decodes(Arith::kTile64Ex2)[1], ragged_prefills(Arith::kMma32)[1]}) {
    tiles.recipe.rows.resize(16);
    if (tiles.recipe.shape.form == Form::kPrefill) tiles.recipe.sequence_rows = {1, 15};
    check_against_reference(host.bench, tiles);
  }
}

TEST_CASE("every ragged case has the bits of the arithmetic in plain C++",
          "[contract][reference][slow]") {
  Opened host("host");
  REQUIRE(host.runtime);
  for (const ArithForm& served : kArithForms) {
    const bool decode = served.form == Form::kDecode;
    for (const CaseSpec& one :
         decode ? ragged_decodes(served.arith) : ragged_prefills(served.arith)) {
      check_against_reference(host.bench, one);
    }
  }
}

TEST_CASE("no case is left out for a shape that no target serves", "[contract][cases]") {
  const auto target = specializer::parse_target("host-x86-64-v3");
  REQUIRE(target);
  std::size_t made = 0;
  for (const CaseSize size : {CaseSize::kFull, CaseSize::kCut}) {
    made = 0;
    const auto check = [&](const std::vector<CaseSpec>& cases) {
      for (const CaseSpec& one : cases) {
        const auto served = specializer::serve(one.recipe.shape, *target);
        INFO(one.name << ": " << (served ? "" : served.error().message));
        CHECK(served);
        ++made;
      }
    };
    for (const ArithForm& served : kArithForms) {
      if (served.form == Form::kDecode) {
        check(ragged_decodes(served.arith));
        check(served_decodes(size, served.arith));
      } else {
        check(ragged_prefills(served.arith));
        check(served_prefills(size, served.arith));
      }
    }
  }
  // The cut ones are the host's: all of them.
  CHECK(family().cases(*target, Sweep::kWhole).size() == made);
}

TEST_CASE("every case of the host's contract has a pinned digest, and every digest a case",
          "[contract][digests]") {
  std::set<std::string, std::less<>> names;
  std::set<std::string, std::less<>> own;
  for (const auto& one : whole_contract(Sweep::kWhole).cases) {
    INFO(one->name());
    CHECK(names.insert(one->name()).second);
    // sage_exact's gates hold every tensor to its reference's SHA-256 instead.
    const bool has_reference_bytes = one->name().starts_with("sage_exact ");
    CHECK(one->pinned_digest().size() == (has_reference_bytes ? 0U : 32U));
    if (spec_of(*one) != nullptr) own.insert(one->name());
  }
  for (const std::string_view name : pinned_digests().names()) {
    INFO(name);
    CHECK(own.contains(name));
  }
  CHECK(pinned_digests().names().size() == own.size());
  CHECK(pinned_digests().of("no such case").empty());
}

TEST_CASE("a checked build is pinned to the bits of the build without checks",
          "[contract][digests]") {
  constexpr std::string_view kChecked = " checked";
  std::set<std::pair<Form, Arith>> seen;
  for (const auto& one : whole_contract(Sweep::kQuick).cases) {
    const CaseSpec* const spec = spec_of(*one);
    if (spec == nullptr || spec->recipe.shape.checked == Switch::kOff) continue;
    INFO(one->name());
    std::string plain = one->name();
    plain.erase(plain.find(kChecked), kChecked.size());
    CHECK_FALSE(pinned_digests().of(plain).empty());
    CHECK(one->pinned_digest() == pinned_digests().of(plain));
    seen.insert({spec->recipe.shape.form, spec->recipe.shape.arith});
  }
  CHECK(seen == std::set<std::pair<Form, Arith>>{{Form::kDecode, Arith::kChunk256},
                                                 {Form::kDecode, Arith::kTile64},
                                                 {Form::kPrefill, Arith::kTile64},
                                                 {Form::kDecode, Arith::kTile64Ex2},
                                                 {Form::kPrefill, Arith::kTile64Ex2},
                                                 {Form::kPrefill, Arith::kMma32}});
}

TEST_CASE("the whole contract passes on a CUDA device, its bits the host's",
          "[contract][gpu][slow]") {
  Opened cuda("cuda");
  if (!cuda.runtime) BROACH_SKIP(cuda.why);
  Opened host("host");
  REQUIRE(host.runtime);
  ContractRequest request = contract_of(families(), cuda.bench.device->target(), Sweep::kWhole);
  request.host = &host.bench;
  request.limits.scopes.clear();
  const ContractReport report = run_contract(cuda.bench, request);
  for (const KernelReport& kernel : report.kernels) {
    INFO(line_of(kernel));
    CHECK(kernel.passed());
  }
  for (const ControlReport& control : report.controls) {
    INFO(line_of(control));
    CHECK(control.red);
  }
}

TEST_CASE("small ragged cases have the host's bits on a CUDA device", "[contract][gpu]") {
  Opened cuda("cuda");
  if (!cuda.runtime) BROACH_SKIP(cuda.why);
  for (const CaseSpec& one : ragged_decodes()) check_against_reference(cuda.bench, one);
}

TEST_CASE("limits that differ are named, limits that are not stated are not",
          "[contract][limits]") {
  LaunchLimits a;
  a.registers = 40;
  a.static_shared = 1024;
  LaunchLimits b = a;
  CHECK(contract::words_of(differences(a, b)).empty());
  b.spill_bytes = 8;  // Not stated by the other.
  CHECK(contract::words_of(differences(a, b)).empty());
  b.registers = 41;
  CHECK(contract::words_of(differences(a, b)) == "registers 40 and 41");
}
