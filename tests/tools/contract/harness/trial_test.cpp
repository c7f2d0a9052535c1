// What the harness makes of any family's trials, shown on one that has no kernel at all.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"
#include "tools/contract/families.hpp"
#include "tools/contract/harness/contract.hpp"
#include "tools/contract/harness/family.hpp"

using namespace broach;
using namespace broach::contract;

namespace {

using Bytes = std::vector<std::byte>;
using Run = std::function<Result<Bytes>(int run, Poison poison)>;

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

class MadeTrial final : public Trial {
 public:
  explicit MadeTrial(Run run) : run_(std::move(run)) {}
  const cache::Key& key() const noexcept override { return key_; }
  Result<Bytes> run(Poison poison) override { return run_(runs_++, poison); }
  std::string place_of(std::size_t byte) const override {
    return "element " + std::to_string(byte / 2);
  }
  void nonfinite(GateReport& report, const GateOptions& options) override {
    judge(report, options);
  }
  void shapes(GateReport& report, const GateOptions& options) override { judge(report, options); }
  void sums(GateReport& report, const GateOptions& options) override { judge(report, options); }

 private:
  static void judge(GateReport& report, const GateOptions& options) {
    if (options.digest == "planted") report.fail("saw the fault");
  }

  Run run_;
  int runs_ = 0;
  cache::Key key_;
};

class MadeCase final : public Case {
 public:
  MadeCase(Run run, std::string error = {})
      : Case("made"), run_(std::move(run)), error_(std::move(error)) {}
  std::string shape_json() const override { return "{}"; }
  std::string_view pinned_digest() const override { return {}; }
  bool has_pinned_bits(const specializer::Target& /*target*/) const override { return false; }
  Result<specializer::Plan> plan(const specializer::Target& /*target*/) const override {
    return Error{ErrorCode::kUnsupported, "no plan", ""};
  }
  std::vector<specializer::Plan> twins(const specializer::Target& /*target*/) const override {
    return {};
  }
  Result<std::unique_ptr<Trial>> load(const Bench& /*bench*/) const override {
    if (!error_.empty()) return Error{ErrorCode::kCompileFailed, error_, ""};
    return std::unique_ptr<Trial>(std::make_unique<MadeTrial>(run_));
  }

 private:
  Run run_;
  std::string error_;
};

Result<Bytes> always_same(int /*run*/, Poison /*poison*/) { return bytes_of({1, 2, 3, 4}); }

Control control_of(std::shared_ptr<const Case> tried) {
  return {"a_fault", "a kind", "does wrong", Gate::kRepeat, "two runs differ", std::move(tried)};
}

}  // namespace

TEST_CASE("gate 2 passes a trial whose five runs have the same bytes", "[contract][trial]") {
  MadeTrial trial(always_same);
  const GateReport report = gate_repeat(trial);
  CHECK(report.passed);
  CHECK(report.gate == Gate::kRepeat);
  CHECK(report.comparisons == 16);
}

TEST_CASE("gate 2 fails a trial that shows a poison, that varies, shrinks or fails",
          "[contract][trial]") {
  struct Faulty {
    Run run;
    std::string words;
  };
  const Faulty faulty[] = {
      {[](int, Poison poison) -> Result<Bytes> {
         return bytes_of({1, 2, 3, poison == Poison::kNan ? 4 : 5});
       },
       "run 2 against run 1: 1 bytes differ; first: element 1"},
      {[](int run, Poison) -> Result<Bytes> {
         return bytes_of({run == 4 ? 9 : 1, 2});
       },
       "run 5 against run 1: 1 bytes differ; first: element 0"},
      {[](int run, Poison) -> Result<Bytes> {
         return run == 0 ? bytes_of({1, 2}) : bytes_of({1});
       },
       "run 2 against run 1: 1 bytes of outputs, not 2"},
      {[](int run, Poison) -> Result<Bytes> {
         if (run == 2) return Error{ErrorCode::kDriver, "it fell over", ""};
         return bytes_of({1});
       },
       "run 3: it fell over"},
  };
  for (const Faulty& one : faulty) {
    MadeTrial trial(one.run);
    const GateReport report = gate_repeat(trial);
    CHECK_FALSE(report.passed);
    REQUIRE_FALSE(report.failures.empty());
    CHECK(report.failures.front() == one.words);
  }
}

TEST_CASE("gates other than the second are the family's", "[contract][trial]") {
  MadeTrial trial(always_same);
  CHECK(run_gate(Gate::kSums, trial, {}).gate == Gate::kSums);
  CHECK(run_gate(Gate::kSums, trial, {}).passed);
  CHECK_FALSE(run_gate(Gate::kShapes, trial, {nullptr, "planted"}).passed);
  CHECK(run_gate(Gate::kRepeat, trial, {nullptr, "planted"}).passed);
}

TEST_CASE("a control is red when its gate fails, and missed when it passes or cannot be built",
          "[contract][trial]") {
  const Run varies = [](int run, Poison) -> Result<Bytes> { return bytes_of({run}); };
  const ControlReport red = try_control(control_of(std::make_shared<MadeCase>(varies)), {}, 1);
  CHECK(red.red);
  CHECK(red.words == "run 2 against run 1: 1 bytes differ; first: element 0");
  const ControlReport green =
      try_control(control_of(std::make_shared<MadeCase>(always_same)), {}, 1);
  CHECK_FALSE(green.red);
  CHECK(green.words == "stayed green");
  const ControlReport unbuilt =
      try_control(control_of(std::make_shared<MadeCase>(always_same, "no such fault")), {}, 1);
  CHECK_FALSE(unbuilt.red);
  CHECK(unbuilt.words == "could not be built: no such fault");
  CHECK(name_of(red.control) == "a_fault (a kind)");

  ContractReport report;
  report.controls = {red};
  CHECK(report.passed());
  report.controls.push_back(unbuilt);
  CHECK(report.missed() == 1);
  CHECK_FALSE(report.passed());
}

TEST_CASE("a family is found by its name, and one that is not there by the names there are",
          "[contract][trial]") {
  REQUIRE_FALSE(families().empty());
  std::string all;
  for (const ContractFamily* const family : families()) {
    const auto found = find_family(family->name());
    REQUIRE(found);
    CHECK(*found == family);
    all += (all.empty() ? "" : ", ") + std::string(family->name());
  }
  const auto missing = find_family("nobody");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message == "no contract of family \"nobody\"; there are " + all);
}
