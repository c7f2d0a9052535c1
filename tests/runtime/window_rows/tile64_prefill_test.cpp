// tile64's prefill by bits: on the host against the arithmetic one row at a time and against the
// decode form, on a GPU against the host. prefill_promises_test.cpp has what it promises wherever
// and beside whatever a row is computed.
#include "tests/reference/mma_steps.hpp"
#include "tests/runtime/window_rows/made_problem.hpp"

namespace broach::test {
namespace {

WindowRowsShape shape_of(std::uint32_t head_dim, std::uint32_t ratio, std::uint32_t window,
                         KvLayout layout = {}, Switch p32 = Switch::kOff) {
  return prefill_shape(Arith::kTile64, head_dim, ratio, window, layout, p32);
}

/// A prefill's rows by the decode form's kernel.
Outputs run_as_decode(const Problem& problem, const Bench& bench = bench_of()) {
  const Problem decode = as_decode(problem);
  return run(kernel_of(decode.shape, {}, bench), decode);
}

std::vector<WindowRowsShape> checked_shapes(Arith arith) {
  std::vector<WindowRowsShape> shapes;
  shapes.push_back(shape_of(64, 2, 100, {KvLayoutKind::kRing, 200}, Switch::kOn));
  shapes.push_back(shape_of(80, 3, 0, {KvLayoutKind::kPaged, 24}));
  shapes.back().dtype = Dtype::kF16;
  shapes.back().sinks = Switch::kOn;
  shapes.push_back(shape_of(256, 1, 130, {}, Switch::kOn));
  shapes.push_back(shape_of(512, 1, 70));
  shapes.back().checked = Switch::kOn;
  for (WindowRowsShape& shape : shapes) shape.arith = arith;
  return shapes;
}

void check_prefill(const WindowRowsShape& shape) {
  CAPTURE(shape.arith, shape.head_dim, shape.window);
  const Problem problem = made(prefill_of(shape, {{200, 66}, {0, 1}, {31, 40}}, Image::kRows5To40));
  const Problem own = without_image(problem);
  const Kernel kernel = kernel_of(shape);
  const Outputs plain = run(kernel, own);
  CHECK(differences(plain, mma_steps_reference(own)) == 0);
  CHECK(differences(run_as_decode(own), plain) == 0);
  CHECK(differences(run(kernel_of(shape, {{}, Switch::kOn}), own), plain) == 0);
  const Outputs image = run(kernel, problem);
  CHECK(differences(image, mma_steps_reference(problem)) == 0);
  CHECK(differences(image, plain) > 0);
}

}  // namespace

TEST_CASE("a prefill gives the reference's bits, and so does the decode of each of its rows",
          "[runtime][tile64]") {
  for (const WindowRowsShape& shape : checked_shapes(Arith::kTile64Ex2)) check_prefill(shape);
  // One source with either exponential.
  check_prefill(checked_shapes(Arith::kTile64).front());
}

TEST_CASE("a prefill gives the reference's bits by tile64 for every shape",
          "[runtime][tile64][slow]") {
  for (const WindowRowsShape& shape : checked_shapes(Arith::kTile64)) check_prefill(shape);
}

TEST_CASE("on a host that models sm_80 both forms give the bits of two k8 steps",
          "[runtime][tile64]") {
  using specializer::MmaStep;
  const Bench& host = bench_of("host:step=k8");
  REQUIRE(host.device != nullptr);
  CHECK(host.device->name() == "host:step=k8");
  const WindowRowsShape shape = shape_of(64, 2, 100, {KvLayoutKind::kRing, 200}, Switch::kOn);
  const Problem problem = made(prefill_of(shape, {{200, 66}, {31, 40}}));
  const Outputs out = run(kernel_of(shape, {}, host), problem);
  CHECK(differences(out, mma_steps_reference(problem, MmaStep::kTwoK8)) == 0);
  CHECK(differences(run_as_decode(problem, host), out) == 0);
  CHECK(differences(out, mma_steps_reference(problem, MmaStep::kOneK16)) > 0);
}

// The contract's quick sweep sees each by its gate.
TEST_CASE("each planted fault of tile64's prefill changes bits", "[runtime][tile64][slow]") {
  // A reversed order is seen in about one f16 output of a thousand.
  WindowRowsShape shape = shape_of(128, 2, 240, {KvLayoutKind::kPaged, 24}, Switch::kOn);
  shape.arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2);
  shape.dtype = Dtype::kF16;
  shape.sinks = Switch::kOn;
  const Problem problem = made(prefill_of(shape, {{300, 64}}, Image::kRows5To40, 2));
  const std::string control = GENERATE(
      "window_early", "combine_reversed", "rescale_dropped", "p_rounded", "low_half_dropped",
      "hi_ignored", "sink_left_out", "page_off_by_one", "ratio_off_by_one", "output_toward_zero");
  CAPTURE(control);
  const Kernel kernel = kernel_of(shape, {control, Switch::kOff});
  CHECK(differences(run(kernel, problem), mma_steps_reference(problem)) > 0);
}

TEST_CASE("a tile64 prefill has the host's bits on a CUDA device", "[runtime][tile64][gpu]") {
  const Bench& cuda = bench_of("cuda");
  if (cuda.device == nullptr) BROACH_SKIP("no CUDA device");
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
    check_device_bits(cuda,
                      made(prefill_of(shape, {{200, 42}, {0, 1}, {31, 9}}, Image::kRows5To40)));
  }
}

}  // namespace broach::test
