#include <future>
#include <memory>
#include <optional>

#include "runtime/window_rows/operators.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/kernel_src/tile64_reference.hpp"
#include "tests/runtime/fixture.hpp"
#include "tests/runtime/proxy_device.hpp"
#include "tests/runtime/window_rows/prefill_problem.hpp"

// First use `background` for tile64's two forms: what is served while the specialised kernel is
// compiled has its bits, and one generic kernel serves every window, ratio and layout.
namespace broach {
namespace {

using test::PrefillProblem;

/// An operator as the problems of these tests launch prefills.
class PrefillOperator {
 public:
  PrefillOperator(runtime::Device& device, WindowRowsPrefill op)
      : device_(device), op_(std::move(op)) {}
  runtime::Device& device() const { return device_; }
  Result<void> launch(const broach_window_rows_prefill_args& args) const {
    return op_.launch(args, nullptr);
  }

 private:
  runtime::Device& device_;
  WindowRowsPrefill op_;
};

/// An operator as they launch decodes.
class DecodeOperator final : public runtime::DecodeLaunch {
 public:
  explicit DecodeOperator(const WindowRowsDecode& op) : DecodeLaunch(op.shape()), op_(op) {}
  std::size_t workspace_bytes(std::int32_t rows, std::int32_t kv_heads,
                              std::int32_t max_keys) const noexcept override {
    return op_.workspace_bytes(rows, kv_heads, max_keys);
  }
  Result<void> launch(const broach_window_rows_decode_args& args,
                      runtime::Stream stream) const override {
    return op_.launch(args, stream);
  }

 private:
  WindowRowsDecode op_;
};

/// An operator of either form.
struct AnyOperator {
  WindowRowsShape shape;
  std::optional<WindowRowsDecode> decode;
  std::optional<WindowRowsPrefill> prefill;
};

Result<AnyOperator> operator_of(Runtime::State& state, const WindowRowsShape& shape) {
  if (shape.form == Form::kDecode) {
    auto op = runtime::window_rows_decode(state, shape);
    if (!op) return op.error();
    return AnyOperator{op->shape(), *op, {}};
  }
  auto op = runtime::window_rows_prefill(state, shape);
  if (!op) return op.error();
  return AnyOperator{op->shape(), {}, *op};
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

std::vector<std::uint16_t> outputs(const PrefillProblem& problem, runtime::Device& device,
                                   const AnyOperator& op) {
  if (op.decode) return problem.decode(DecodeOperator(*op.decode));
  return problem.run(PrefillOperator(device, *op.prefill), problem.whole(), false);
}

std::vector<std::uint16_t> expected(const PrefillProblem& problem) {
  return problem.expected<test::Tile64Reference>(false);
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
  const PrefillProblem problem(first->shape, {{200, 66}, {31, 5}});
  const auto generic = outputs(problem, *device, *first);
  CHECK(generic == expected(problem));
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
    const PrefillProblem other(op->shape, {{200, 66}, {31, 5}});
    CHECK(outputs(other, *device, *op) == expected(other));
    state->background.drain();
    CHECK(outputs(other, *device, *op) == expected(other));
  }
}

}  // namespace broach
