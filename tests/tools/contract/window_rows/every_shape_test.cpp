// The whole shape table by bits: every head_dim, type and form of P with layouts, windows and
// options in turn, and every ratio, against the arithmetic in plain C++.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "specializer/window_rows/shape.hpp"
#include "tests/reference/chunk256.hpp"
#include "tests/reference/mma_steps.hpp"
#include "tests/reference/portable_exponential.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/opened_runtime.hpp"
#include "tools/contract/window_rows/gates.hpp"
#include "tools/contract/window_rows/launch_ways.hpp"
#include "tools/contract/window_rows/prefill.hpp"

using namespace broach;
using namespace broach::contract;
using namespace broach::contract::window_rows;

namespace {

constexpr std::uint32_t kWindow = 60;
constexpr std::int32_t kPrefillRows = 20;
constexpr KvLayout kLayouts[] = {
    {}, {KvLayoutKind::kRing, kWindow + kPrefillRows + 4}, {KvLayoutKind::kPaged, 24}};

struct Served {
  Form form;
  Arith arith;
};
constexpr Served kServed[] = {
    {Form::kDecode, Arith::kChunk256},   {Form::kDecode, Arith::kTile64},
    {Form::kPrefill, Arith::kTile64},    {Form::kDecode, Arith::kTile64Ex2},
    {Form::kPrefill, Arith::kTile64Ex2}, {Form::kPrefill, Arith::kMma32}};

Switch on_where(bool condition) { return condition ? Switch::kOn : Switch::kOff; }

/// What a shape has besides its form, head_dim, type and P, by turns that share no period.
WindowRowsShape shape_in_turn(const Served& served, std::uint32_t turn) {
  WindowRowsShape shape;
  shape.form = served.form;
  shape.arith = served.arith;
  shape.kv_layout = kLayouts[turn % std::size(kLayouts)];
  const bool needs_window = shape.kv_layout.kind == KvLayoutKind::kRing;
  shape.window = needs_window || turn % 5 < 3 ? kWindow : 0;
  shape.gqa_ratio = 1 + turn % 2;
  shape.softcap = on_where(turn % 7 < 3);
  shape.sinks = on_where(turn % 11 < 5);
  shape.checked = on_where(turn % 13 < 5);
  return shape;
}

/// Every head_dim x type x form of P.
std::vector<WindowRowsShape> every_width(const Served& served) {
  std::vector<WindowRowsShape> shapes;
  for (const std::uint32_t head_dim : {64U, 80U, 96U, 112U, 128U, 192U, 256U, 512U}) {
    for (const Dtype dtype : {Dtype::kBf16, Dtype::kF16}) {
      for (const Switch p32 : {Switch::kOff, Switch::kOn}) {
        if (p32 == Switch::kOn && served.arith == Arith::kChunk256) continue;  // Keeps P in fp32.
        WindowRowsShape shape = shape_in_turn(served, static_cast<std::uint32_t>(shapes.size()));
        shape.head_dim = head_dim;
        shape.dtype = dtype;
        shape.p32 = p32;
        shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

std::vector<WindowRowsShape> every_ratio(const Served& served) {
  std::vector<WindowRowsShape> shapes;
  for (std::uint32_t ratio = 1; ratio <= 32; ++ratio) {
    WindowRowsShape shape = shape_in_turn(served, ratio);
    shape.head_dim = 64;
    shape.gqa_ratio = ratio;
    shape.softcap = shape.sinks = Switch::kOff;  // One generic kernel then serves them all.
    shape.checked = Switch::kOff;
    shapes.push_back(shape);
  }
  return shapes;
}

/// Three rows of a decode; a chunk with an image, and a second sequence of five rows.
Problem problem_of(const WindowRowsShape& shape) {
  Recipe recipe;
  if (shape.form == Form::kPrefill) {
    auto chunks = prefill_of("", shape, 1,
                             {{0, 70, kPrefillRows, ImageRows{4, 11}}, {1, 0, 5, std::nullopt}});
    REQUIRE(chunks);
    recipe = chunks->recipe;
  } else {
    recipe.shape = shape;
    recipe.kv_heads = 2;
    recipe.rows = {{0, 20}, {1, 90}, {2, 130}};
  }
  recipe.scale = 0.8F;
  recipe.softcap = shape.softcap == Switch::kOn ? 20.0F : 0.0F;
  auto made = make_problem(recipe);
  INFO((made ? std::string() : made.error().message));
  REQUIRE(made);
  return *std::move(made);
}

std::vector<std::uint16_t> reference_of(const Problem& problem, specializer::MmaStep step) {
  return problem.shape.arith == Arith::kChunk256
             ? test::chunk256_reference(problem, test::portable_exponential)
             : test::mma_steps_reference(problem, step);
}

/// Each shape in each way of a launch, and as the generic kernel where asked for.
void check_shapes(const Bench& bench, const std::vector<WindowRowsShape>& shapes,
                  const std::vector<specializer::Variant>& variants) {
  for (const specializer::Variant& variant : variants) {
    test::compile_ahead(bench, shapes, variant);
  }
  for (const WindowRowsShape& shape : shapes) {
    CAPTURE(specializer::to_json(shape));
    const Problem problem = problem_of(shape);
    const auto expected = reference_of(problem, bench.device->target().mma_step);
    auto uploaded = DeviceProblem::upload(*bench.device, problem);
    REQUIRE(uploaded);
    for (const specializer::Variant& variant : variants) {
      CAPTURE(variant.generic == Switch::kOn);
      const auto kernel = contract::window_rows::Kernel::load(bench, shape, variant);
      INFO((kernel ? std::string() : kernel.error().message));
      REQUIRE(kernel);
      const auto ways = launch_ways(*kernel);
      REQUIRE(ways);
      for (const LaunchWay& way : *ways) {
        CAPTURE(way.name);
        const auto out = uploaded->run(way.decoder, Poison::kNan);
        INFO((out ? std::string() : out.error().message));
        REQUIRE(out);
        CHECK(difference(problem, *out, problem, expected, first_rows(problem.rows)) == "");
      }
    }
  }
}

void check_table(const Bench& bench, const Served& served) {
  check_shapes(bench, every_width(served), {{}});
  check_shapes(bench, every_ratio(served), {{}, {"", Switch::kOn}});
}

}  // namespace

TEST_CASE("the turns of the shape table try each option on and off and each layout both ways",
          "[contract][shape_table]") {
  for (const Served& served : kServed) {
    std::set<std::tuple<KvLayoutKind, bool>> windows;
    std::set<std::tuple<Switch, Switch>> softcap_sinks;
    std::set<std::tuple<KvLayoutKind, Switch>> checked;
    for (const WindowRowsShape& shape : every_width(served)) {
      windows.insert({shape.kv_layout.kind, shape.window != 0});
      softcap_sinks.insert({shape.softcap, shape.sinks});
      checked.insert({shape.kv_layout.kind, shape.checked});
      CHECK(specializer::serve(shape, *specializer::parse_target("host")));
    }
    CHECK(windows.size() == 5);  // A ring without a window is refused.
    CHECK(softcap_sinks.size() == 4);
    CHECK(checked.size() == 6);
  }
}

TEST_CASE("every shape of the table has the bits of the arithmetic in plain C++ on the host",
          "[contract][shape_table][slow]") {
  test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  for (const Served& served : kServed) check_table(host.bench, served);
}

TEST_CASE("every width of the table has them on a host that models sm_80's step too",
          "[contract][shape_table][slow]") {
  test::OpenedRuntime host("host:step=k8");
  REQUIRE(host.runtime);
  for (const Served& served : kServed) check_shapes(host.bench, every_width(served), {{}});
}

TEST_CASE("every shape of the table has the bits of the arithmetic in plain C++ on a CUDA device",
          "[contract][shape_table][gpu]") {
  test::OpenedRuntime cuda("cuda");
  if (!cuda.runtime) BROACH_SKIP(cuda.why);
  for (const Served& served : kServed) check_table(cuda.bench, served);
}
