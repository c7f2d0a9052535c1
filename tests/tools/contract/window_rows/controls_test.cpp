#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "kernel_src/embedded.hpp"
#include "specializer/plan.hpp"
#include "specializer/target.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/support/catch.hpp"
#include "tools/contract/window_rows/controls.hpp"
#include "tools/contract/window_rows/family.hpp"

using namespace broach;
using namespace broach::contract;
using namespace broach::contract::window_rows;

namespace {

specializer::Target target_named(std::string_view name) {
  auto target = specializer::parse_target(name);
  REQUIRE(target);
  return *target;
}

// "kWindowEarly" as "window_early".
std::string snake_case(std::string_view enumerator) {
  std::string name;
  for (const char c : enumerator.substr(1)) {
    if (c >= 'A' && c <= 'Z') {
      if (!name.empty()) name += '_';
      name += static_cast<char>(c - 'A' + 'a');
    } else {
      name += c;
    }
  }
  return name;
}

// The enumerators of a kernel source's `enum class Control`, without kNone.
std::set<std::string> faults_in(std::string_view source) {
  std::set<std::string> faults;
  const std::size_t begin = source.find("enum class Control : int {");
  REQUIRE(begin != std::string_view::npos);
  const std::string_view body = source.substr(begin, source.find("};", begin) - begin);
  for (std::size_t at = body.find("\n  k"); at != std::string_view::npos;
       at = body.find("\n  k", at + 1)) {
    const std::size_t from = at + 3;
    const std::string name = snake_case(body.substr(from, body.find(',', from) - from));
    if (name != "none") faults.insert(name);
  }
  return faults;
}

}  // namespace

TEST_CASE("every fault that a kernel source has is tried, and no other", "[contract][controls]") {
  const auto source =
      std::find_if(kKernelSources.begin(), kKernelSources.end(),
                   [](const EmbeddedFile& one) { return one.name == "window_rows/config.h"; });
  REQUIRE(source != kKernelSources.end());
  std::set<std::string> tried;
  for (const PlantedFault& control : planted_faults()) tried.emplace(control.name);
  CHECK(tried == faults_in(source->bytes));
}

TEST_CASE("a control that a kernel does not have is refused by its name", "[contract][controls]") {
  const specializer::Target target = target_named("sm_90a");
  for (const PlantedFault& control : planted_faults()) {
    const WindowRowsShape shape = control_case(control).recipe.shape;
    CHECK(specializer::plan(shape, target, {std::string(control.name), Switch::kOff}));
    const auto refused = specializer::plan(shape, target, {"windoww_early", Switch::kOff});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUnsupported);
    CHECK(refused.error().message.find("windoww_early") != std::string::npos);
  }
}

TEST_CASE("a control that cannot change a shape's kernel is refused with what it needs",
          "[contract][controls]") {
  const specializer::Target target = target_named("sm_90a");
  std::size_t refused = 0;
  for (const PlantedFault& control : planted_faults()) {
    WindowRowsShape shape = control_case(control).recipe.shape;
    const std::string_view name = control.name;
    std::string_view needed;
    if (name == "window_early") shape.window = 0, needed = "window of 1 or more";
    if (name == "sink_left_out") shape.sinks = Switch::kOff, needed = "sinks=on";
    if (name == "low_half_dropped") shape.p32 = Switch::kOff, needed = "p32=on";
    if (name == "page_off_by_one") shape.kv_layout = {}, needed = "kv_layout=paged(N)";
    if (name == "window_early") shape.kv_layout = {};
    INFO(control_of(control).kind << " " << control.name);
    const auto plan = specializer::plan(shape, target, {std::string(name), Switch::kOff});
    CHECK(plan.ok() == needed.empty());
    if (plan || needed.empty()) continue;
    ++refused;
    CHECK(plan.error().code == ErrorCode::kUnsupported);
    CHECK(plan.error().message.find(name) != std::string::npos);
    CHECK(plan.error().message.ends_with("it needs " + std::string(needed)));
  }
  CHECK(refused == 23);
  // A generic kernel reads window and layout at run time.
  const WindowRowsShape plain = [] {
    WindowRowsShape shape;
    shape.head_dim = 64;
    shape.gqa_ratio = 2;
    return shape;
  }();
  CHECK(specializer::plan(plain, target, {"window_early", Switch::kOn}));
  CHECK(specializer::plan(plain, target, {"page_off_by_one", Switch::kOn}));
}

TEST_CASE("either sweep tries every control, and every form's ratios, head_dims and options",
          "[contract][controls]") {
  const specializer::Target host = target_named(specializer::native_host_target());
  const Sweep sweep = GENERATE(Sweep::kQuick, Sweep::kWhole);
  const auto cases = family().cases(host, sweep);
  CHECK(family().controls(host).size() == planted_faults().size());
  std::set<std::string> names;
  for (const auto& one : cases) names.insert(one->name());
  CHECK(names.size() == cases.size());
  for (const ArithForm& served : kArithForms) {
    CAPTURE(static_cast<int>(served.arith), static_cast<int>(served.form));
    std::set<std::uint32_t> ratios;
    std::set<std::uint32_t> head_dims;
    std::set<KvLayoutKind> layouts;
    std::set<Dtype> dtypes;
    std::set<Switch> p32, softcap, sinks, checked;
    bool every_layout = false;
    for (const auto& one : cases) {
      const CaseSpec& spec = *spec_of(*one);
      const WindowRowsShape& shape = spec.recipe.shape;
      if (shape.form != served.form || shape.arith != served.arith) continue;
      ratios.insert(shape.gqa_ratio);
      head_dims.insert(shape.head_dim);
      layouts.insert(shape.kv_layout.kind);
      dtypes.insert(shape.dtype);
      p32.insert(shape.p32);
      softcap.insert(shape.softcap);
      sinks.insert(shape.sinks);
      checked.insert(shape.checked);
      every_layout = every_layout || spec.twins == Twins::kAll;
    }
    CHECK(ratios.contains(32));
    const bool whole = sweep == Sweep::kWhole;
    // mma32 and tile64 lay rows and heads out by tile64_ex2's header: a quick sweep tries that
    // one's every ratio.
    if (whole || served.arith == Arith::kTile64Ex2 || served.arith == Arith::kChunk256) {
      for (const std::uint32_t ratio : {1U, 2U, 3U, 5U, 7U, 8U, 12U, 16U}) {
        CAPTURE(ratio);
        CHECK(ratios.contains(ratio));
      }
    }
    // tile64_ex2 is tile64's source with another exponential: a quick sweep tries its every shape.
    if (whole || served.arith != Arith::kTile64) {
      CHECK(head_dims.size() == 8);
      CHECK(layouts.size() == 3);
    }
    CHECK(dtypes.size() == 2);
    CHECK(p32.size() == (served.arith == Arith::kChunk256 ? 1 : 2));
    CHECK(softcap.size() == 2);
    CHECK(sinks.size() == 2);
    CHECK(checked.size() == 2);
    CHECK(every_layout);
  }
}
