// tile64's prefill by bits: on the host against the arithmetic one row at a time and against the
// decode form, on a GPU against the host. prefill_promises_test.cpp has what it promises wherever
// and beside whatever a row is computed.
#include "tests/kernel_src/tile64_reference.hpp"
#include "tests/runtime/window_rows/prefill_problem.hpp"
#include "tests/runtime/window_rows/tile64_problem.hpp"

namespace broach {
namespace {

using test::differences;
using test::PrefillKernel;
using test::PrefillProblem;
using Reference = test::Tile64Reference;

WindowRowsShape shape_of(std::uint32_t head_dim, std::uint32_t ratio, std::uint32_t window,
                         KvLayout layout = {}, Switch p32 = Switch::kOff) {
  return test::prefill_shape(Arith::kTile64, head_dim, ratio, window, layout, p32);
}

WindowRowsShape as_decode(WindowRowsShape shape) {
  shape.form = Form::kDecode;
  return shape;
}

}  // namespace

TEST_CASE("a prefill gives the reference's bits, and so does the decode of each of its rows",
          "[runtime][tile64]") {
  std::vector<WindowRowsShape> shapes;
  shapes.push_back(shape_of(64, 2, 100, {KvLayoutKind::kRing, 200}, Switch::kOn));
  shapes.push_back(shape_of(80, 3, 0, {KvLayoutKind::kPaged, 24}));
  shapes.back().dtype = Dtype::kF16;
  shapes.back().sinks = Switch::kOn;
  shapes.push_back(shape_of(256, 1, 130, {}, Switch::kOn));
  shapes.push_back(shape_of(512, 1, 70));
  shapes.back().checked = Switch::kOn;
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2);
  for (WindowRowsShape shape : shapes) {
    shape.arith = arith;
    CAPTURE(shape.arith, shape.head_dim, shape.window);
    PrefillProblem problem(shape, {{200, 66}, {0, 1}, {31, 40}});
    const PrefillKernel kernel(shape);
    const auto plain = problem.run(kernel, problem.whole(), false);
    CHECK(differences(plain, problem.expected<Reference>(false)) == 0);
    CHECK(differences(problem.decode(*test::Tile64Kernel(as_decode(shape)).launch()), plain) == 0);
    const PrefillKernel generic(shape, {{}, Switch::kOn});
    CHECK(differences(problem.run(generic, problem.whole(), false), plain) == 0);
    problem.add_image();
    const auto image = problem.run(kernel, problem.whole());
    CHECK(differences(image, problem.expected<Reference>()) == 0);
    CHECK(differences(image, plain) > 0);
  }
}

TEST_CASE("on a host that models sm_80 both forms give the bits of two k8 steps",
          "[runtime][tile64]") {
  const auto device = runtime::open_device("host:step=k8");
  REQUIRE(device);
  CHECK((*device)->name() == "host:step=k8");
  const WindowRowsShape shape = shape_of(64, 2, 100, {KvLayoutKind::kRing, 200}, Switch::kOn);
  const PrefillProblem problem(shape, {{200, 66}, {31, 40}});
  const auto out = problem.run(PrefillKernel(shape, {}, **device), problem.whole(), false);
  CHECK(differences(out, problem.expected<Reference>(false, true)) == 0);
  const test::Tile64Kernel decode(as_decode(shape), {}, **device);
  CHECK(differences(problem.decode(*decode.launch()), out) == 0);
  CHECK(differences(out, problem.expected<Reference>(false)) > 0);
}

TEST_CASE("each planted fault of tile64's prefill changes bits", "[runtime][tile64]") {
  // A reversed order is seen in about one f16 output of a thousand.
  WindowRowsShape shape = shape_of(128, 2, 240, {KvLayoutKind::kPaged, 24}, Switch::kOn);
  shape.arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2);
  shape.dtype = Dtype::kF16;
  shape.sinks = Switch::kOn;
  PrefillProblem problem(shape, {{300, 64}}, 2);
  problem.add_image();
  const std::string control = GENERATE(
      "window_early", "combine_reversed", "rescale_dropped", "p_rounded", "low_half_dropped",
      "hi_ignored", "sink_left_out", "page_off_by_one", "ratio_off_by_one", "output_toward_zero");
  CAPTURE(control);
  const PrefillKernel kernel(shape, {control, Switch::kOff});
  CHECK(differences(problem.run(kernel, problem.whole()), problem.expected<Reference>()) > 0);
}

TEST_CASE("a tile64 prefill has the host's bits on a CUDA device", "[runtime][tile64][gpu]") {
  const auto cuda = runtime::open_device("cuda");
  if (!cuda) BROACH_SKIP(cuda.error().message);
  std::vector<WindowRowsShape> shapes;
  for (const std::uint32_t head_dim : {64U, 80U, 96U, 112U, 128U, 192U, 256U, 512U}) {
    for (const Switch p32 : {Switch::kOff, Switch::kOn}) {
      shapes.push_back(shape_of(head_dim, 2, 100, {KvLayoutKind::kRing, 200}, p32));
      shapes.back().sinks = p32;
      shapes.back().dtype = head_dim == 80 || head_dim == 128 ? Dtype::kF16 : Dtype::kBf16;
      shapes.back().softcap = head_dim == 96 ? Switch::kOn : Switch::kOff;
    }
  }
  shapes.push_back(shape_of(64, 32, 40, {KvLayoutKind::kPaged, 24}));
  shapes.push_back(shape_of(128, 12, 0));
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2);
  for (WindowRowsShape shape : shapes) {
    shape.arith = arith;
    CAPTURE(shape.arith, shape.head_dim);
    test::check_device_bits(**cuda, {shape, {{200, 42}, {0, 1}, {31, 9}}});
  }
}

}  // namespace broach
