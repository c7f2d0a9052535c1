// Every way through the window_rows kernels in a few launches of a few rows: each form and
// arithmetic, each layout, both types, every option, specialised and generic, every schedule of
// tiles, values cleaned and rows computed again in float64. Small enough for tools that slow a
// kernel down a hundred times: `[sanitize]` is what tools/device-run runs under compute-sanitizer.
#include <cmath>
#include <limits>
#include <vector>

#include "specializer/window_rows/shape.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/opened_runtime.hpp"
#include "tools/contract/harness/number.hpp"
#include "tools/contract/window_rows/gates.hpp"
#include "tools/contract/window_rows/launch_ways.hpp"
#include "tools/contract/window_rows/prefill.hpp"
#include "tools/contract/window_rows/range.hpp"

namespace broach {
namespace {

using contract::Bench;
using contract::window_rows::Problem;

constexpr Switch kOff = Switch::kOff;
constexpr Switch kOn = Switch::kOn;
constexpr KvLayout kLinear{};
constexpr KvLayout kPages{KvLayoutKind::kPaged, 24};
constexpr KvLayout ring(std::uint32_t length) { return {KvLayoutKind::kRing, length}; }

struct Path {
  Form form;
  Arith arith;
  std::uint32_t head_dim;
  std::uint32_t gqa_ratio;
  std::uint32_t window;
  KvLayout layout;
  Dtype dtype;
  Switch p32, softcap, sinks, checked;
};

// Head dims and ratios by what changes the code: chunk256's lanes and passes over the query heads,
// tile64's pieces, head blocks and warps, mma32's slices, and warps that share a band.
constexpr Path kPaths[] = {
    {Form::kDecode, Arith::kChunk256, 64, 1, 0, kLinear, Dtype::kBf16, kOff, kOff, kOff, kOff},
    {Form::kDecode, Arith::kChunk256, 512, 3, 90, ring(96), Dtype::kF16, kOff, kOff, kOn, kOff},
    {Form::kDecode, Arith::kChunk256, 80, 12, 100, kPages, Dtype::kBf16, kOff, kOn, kOff, kOn},
    {Form::kDecode, Arith::kTile64, 64, 2, 100, ring(110), Dtype::kBf16, kOn, kOff, kOff, kOff},
    {Form::kDecode, Arith::kTile64, 80, 3, 0, kPages, Dtype::kF16, kOff, kOn, kOn, kOff},
    {Form::kDecode, Arith::kTile64, 192, 12, 90, kLinear, Dtype::kBf16, kOff, kOff, kOff, kOn},
    {Form::kDecode, Arith::kTile64, 512, 32, 70, kLinear, Dtype::kBf16, kOn, kOff, kOff, kOff},
    {Form::kPrefill, Arith::kTile64, 64, 2, 100, ring(166), Dtype::kBf16, kOff, kOff, kOff, kOff},
    {Form::kPrefill, Arith::kTile64, 80, 3, 0, kPages, Dtype::kF16, kOff, kOn, kOn, kOff},
    {Form::kPrefill, Arith::kTile64, 192, 1, 70, kLinear, Dtype::kBf16, kOn, kOff, kOff, kOn},
    {Form::kPrefill, Arith::kTile64, 512, 1, 60, kLinear, Dtype::kBf16, kOn, kOff, kOff, kOff},
    {Form::kDecode, Arith::kTile64Ex2, 64, 2, 100, ring(110), Dtype::kBf16, kOn, kOff, kOff, kOff},
    {Form::kDecode, Arith::kTile64Ex2, 80, 3, 0, kPages, Dtype::kF16, kOff, kOn, kOn, kOff},
    {Form::kDecode, Arith::kTile64Ex2, 192, 12, 90, kLinear, Dtype::kBf16, kOff, kOff, kOff, kOn},
    {Form::kDecode, Arith::kTile64Ex2, 512, 32, 70, kLinear, Dtype::kBf16, kOn, kOff, kOff, kOff},
    {Form::kPrefill, Arith::kTile64Ex2, 64, 2, 100, ring(166), Dtype::kBf16, kOff, kOff, kOff,
     kOff},
    {Form::kPrefill, Arith::kTile64Ex2, 80, 3, 0, kPages, Dtype::kF16, kOff, kOn, kOn, kOff},
    {Form::kPrefill, Arith::kTile64Ex2, 192, 1, 70, kLinear, Dtype::kBf16, kOn, kOff, kOff, kOn},
    {Form::kPrefill, Arith::kTile64Ex2, 512, 1, 60, kLinear, Dtype::kBf16, kOn, kOff, kOff, kOff},
    {Form::kPrefill, Arith::kMma32, 64, 2, 100, ring(166), Dtype::kBf16, kOff, kOff, kOff, kOff},
    {Form::kPrefill, Arith::kMma32, 80, 3, 0, kPages, Dtype::kF16, kOff, kOn, kOn, kOff},
    {Form::kPrefill, Arith::kMma32, 192, 1, 70, kLinear, Dtype::kBf16, kOn, kOff, kOff, kOn},
    {Form::kPrefill, Arith::kMma32, 512, 1, 60, kLinear, Dtype::kBf16, kOn, kOff, kOff, kOff},
};

WindowRowsShape shape_of(const Path& path) {
  WindowRowsShape shape;
  shape.form = path.form;
  shape.arith = path.arith;
  shape.head_dim = path.head_dim;
  shape.gqa_ratio = path.gqa_ratio;
  shape.window = path.window;
  shape.kv_layout = path.layout;
  shape.dtype = path.dtype;
  shape.p32 = path.p32;
  shape.softcap = path.softcap;
  shape.sinks = path.sinks;
  shape.checked = path.checked;
  return shape;
}

/// Decode: a row within its first tile, one that sees several, one whose ring has wrapped. Prefill:
/// two blocks of one sequence that end with an image, and a sequence of two rows.
///
/// A query that is NaN, and an infinite value that some rows see and others of their block do not.
Problem problem_of(const WindowRowsShape& shape) {
  const bool is_prefill = shape.form == Form::kPrefill;
  contract::window_rows::Recipe recipe;
  if (is_prefill) {
    auto chunks = contract::window_rows::prefill_of(
        "", shape, 1,
        {{0, 100, 66, contract::window_rows::ImageRows{60, 65}}, {1, 0, 2, std::nullopt}});
    REQUIRE(chunks);
    recipe = chunks->recipe;
  } else {
    recipe.shape = shape;
    recipe.kv_heads = 2;
    recipe.rows = {{0, 20}, {1, 130}, {2, 199}};
  }
  recipe.scale = 0.8F;
  recipe.softcap = shape.softcap == kOn ? 20.0F : 0.0F;
  auto made = contract::window_rows::make_problem(recipe);
  INFO((made ? std::string() : made.error().message));
  REQUIRE(made);
  const std::int32_t row_of_query = is_prefill ? 7 : 0;
  const std::int32_t row_of_value = is_prefill ? 62 : 1;
  const std::int32_t value_at = is_prefill ? 162 : 125;
  const auto bits = [&](double value) { return contract::round_to(value, shape.dtype); };
  made->q[static_cast<std::size_t>(made->q_at(row_of_query, made->heads() - 1) + 5)] =
      bits(std::nan(""));
  made->v[static_cast<std::size_t>(made->v_at(row_of_value, value_at, 0) + 9)] =
      bits(std::numeric_limits<double>::infinity());
  return *std::move(made);
}

contract::window_rows::Kernel loaded(const Bench& bench, const WindowRowsShape& shape,
                                     const specializer::Variant& variant = {}) {
  auto kernel = contract::window_rows::Kernel::load(bench, shape, variant);
  INFO((kernel ? std::string() : kernel.error().message + kernel.error().detail));
  REQUIRE(kernel);
  return *std::move(kernel);
}

/// Every path on a bench gives the bits of the host's specialised kernel, which lie in float64's
/// range and have its classes.
void check_paths(const Bench& bench, const Bench& host) {
  const std::vector<specializer::Variant> variants{{}, {"", kOn}};
  std::vector<WindowRowsShape> shapes;
  for (const Path& path : kPaths) shapes.push_back(shape_of(path));
  for (const specializer::Variant& variant : variants) {
    test::compile_ahead(bench, shapes, variant);
  }
  if (bench.device != host.device) test::compile_ahead(host, shapes);
  for (const WindowRowsShape& shape : shapes) {
    CAPTURE(specializer::to_json(shape));
    const Problem problem = problem_of(shape);
    const auto same = contract::window_rows::first_rows(problem.rows);
    const auto expected = loaded(host, shape).run(problem);
    REQUIRE(expected);
    const auto range = contract::window_rows::check_outputs(problem, *expected);
    REQUIRE(range);
    CHECK(range->passed());
    CHECK(range->nonfinite_matched > shape.head_dim);  // The query's head, and the value's column.
    auto uploaded = contract::window_rows::DeviceProblem::upload(*bench.device, problem);
    REQUIRE(uploaded);
    for (const specializer::Variant& variant : variants) {
      CAPTURE(variant.generic == kOn);
      const contract::window_rows::Kernel kernel = loaded(bench, shape, variant);
      const auto ways = contract::window_rows::launch_ways(kernel);
      REQUIRE(ways);
      for (const contract::window_rows::LaunchWay& way : *ways) {
        CAPTURE(way.name);
        const auto out = uploaded->run(way.decoder, contract::Poison::kNan);
        INFO((out ? std::string() : out.error().message));
        REQUIRE(out);
        CHECK(contract::window_rows::difference(problem, *out, problem, *expected, same) == "");
      }
    }
  }
}

}  // namespace

TEST_CASE("every path of every kernel has the host's bits on a GPU",
          "[runtime][cuda][paths][gpu][sanitize]") {
  test::OpenedRuntime cuda("cuda");
  if (!cuda.runtime) BROACH_SKIP(cuda.why);
  const bool two_k8 = cuda.bench.device->target().mma_step == specializer::MmaStep::kTwoK8;
  test::OpenedRuntime host(two_k8 ? "host:step=k8" : "host");
  REQUIRE(host.runtime);
  check_paths(cuda.bench, host.bench);
}

TEST_CASE("every path of every kernel has the same bits on the host", "[runtime][paths][slow]") {
  test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  check_paths(host.bench, host.bench);
}

}  // namespace broach
