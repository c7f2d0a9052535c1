#include <future>
#include <memory>

#include "runtime/window_rows/operators.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/reference/mma_steps.hpp"
#include "tests/runtime/fixture.hpp"
#include "tests/runtime/proxy_device.hpp"
#include "tests/runtime/window_rows/made_problem.hpp"
#include "tools/contract/window_rows/launch.hpp"

// First use `background` for tile64's two forms: what is served while the specialised kernel is
// compiled has its bits, and one generic kernel serves every window, ratio and layout.
namespace broach {
namespace {

using test::Outputs;
using test::Problem;

/// An operator of either form.
struct AnyOperator {
  WindowRowsShape shape;
  contract::window_rows::Decoder decoder;
};

Result<AnyOperator> operator_of(Runtime::State& state, const WindowRowsShape& shape) {
  if (shape.form == Form::kDecode) {
    auto op = runtime::window_rows_decode(state, shape);
    if (!op) return op.error();
    return AnyOperator{op->shape(), contract::window_rows::decoder_of(*op)};
  }
  auto op = runtime::window_rows_prefill(state, shape);
  if (!op) return op.error();
  return AnyOperator{op->shape(), contract::window_rows::decoder_of(*op)};
}

WindowRowsShape shape_of(Form form, std::uint32_t ratio, std::uint32_t window, KvLayout layout) {
  WindowRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = ratio;
  shape.window = window;
  shape.kv_layout = layout;
  shape.form = form;
  return shape;
}

Problem problem_of(const WindowRowsShape& shape) {
  WindowRowsShape prefill = shape;
  prefill.form = Form::kPrefill;
  const Problem problem = test::made(test::prefill_of(prefill, {{200, 66}, {31, 5}}));
  return shape.form == Form::kDecode ? test::as_decode(problem) : problem;
}

Outputs outputs(const Problem& problem, runtime::Device& device, const AnyOperator& op) {
  return test::run(op.decoder, problem, device);
}

Outputs expected(Problem problem, const AnyOperator& op) {
  problem.shape = op.shape;
  return test::mma_steps_reference(problem);
}

}  // namespace

TEST_CASE("both forms are served by one generic kernel, then promoted to the same bits",
          "[runtime][background]") {
  const Form form = GENERATE(Form::kDecode, Form::kPrefill);
  const test::TempDir dir;
  auto host = runtime::open_device("host");
  REQUIRE(host);
  const auto device = std::make_shared<test::ProxyDevice>(*host);
  std::promise<void> gate;
  device->before_load = [&, opened = gate.get_future().share()](int number) {
    if (number == 2) opened.wait();  // The first promotion.
  };
  const auto state = test::state_on(device, dir, FirstUse::kBackground);
  const std::vector<WindowRowsShape> shapes = {
      shape_of(form, 2, 100, {KvLayoutKind::kRing, 200}),
      shape_of(form, 3, 0, {KvLayoutKind::kPaged, 24}),
      shape_of(form, 1, 70, {}),
  };
  const auto state_of = [&](const AnyOperator& op) {
    return state->operators.find(specializer::shape_of(op.shape))->get();
  };

  const auto first = operator_of(*state, shapes[0]);
  REQUIRE(first);
  CHECK(first->shape.arith == Arith::kTile64Ex2);
  const runtime::Operator* const first_state = state_of(*first);
  REQUIRE(first_state->serving == first_state->first.launch.get());
  const Problem problem = problem_of(first->shape);
  const Outputs generic = outputs(problem, *device, *first);
  CHECK(generic == expected(problem, *first));
  gate.set_value();
  state->background.drain();
  REQUIRE(first_state->serving == first_state->promoted.launch.get());
  CHECK(first_state->promoted.key != first_state->first.key);
  CHECK(outputs(problem, *device, *first) == generic);

  for (std::size_t i = 1; i < shapes.size(); ++i) {
    CAPTURE(i);
    const auto op = operator_of(*state, shapes[i]);
    REQUIRE(op);
    CHECK(state_of(*op)->first.key == first_state->first.key);
    const Problem other = problem_of(op->shape);
    CHECK(outputs(other, *device, *op) == expected(other, *op));
    state->background.drain();
    CHECK(outputs(other, *device, *op) == expected(other, *op));
  }
}

}  // namespace broach
