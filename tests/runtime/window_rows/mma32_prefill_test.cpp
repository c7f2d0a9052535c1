// mma32's prefill by bits: on the host against the arithmetic one row at a time, on a GPU against
// the host. prefill_promises_test.cpp has what it promises wherever and beside whatever a row is
// computed.
#include "tests/kernel_src/mma32_reference.hpp"
#include "tests/runtime/window_rows/prefill_problem.hpp"

namespace broach {
namespace {

using test::differences;
using test::PrefillKernel;
using test::PrefillProblem;
using Reference = test::Mma32Reference;

WindowRowsShape shape_of(std::uint32_t head_dim, std::uint32_t ratio, std::uint32_t window,
                         KvLayout layout = {}, Switch p32 = Switch::kOff) {
  return test::prefill_shape(Arith::kMma32, head_dim, ratio, window, layout, p32);
}

/// Every head_dim, and every option somewhere: both types, p32, softcap, sinks, `checked`, all
/// layouts, window and none, ratios up to 32.
std::vector<WindowRowsShape> shapes() {
  constexpr Switch kOn = Switch::kOn;
  std::vector<WindowRowsShape> all{
      shape_of(64, 2, 100, {KvLayoutKind::kRing, 200}, kOn),
      shape_of(80, 3, 0, {KvLayoutKind::kPaged, 24}),
      shape_of(96, 7, 33),
      shape_of(112, 1, 65, {KvLayoutKind::kRing, 130}, kOn),
      shape_of(128, 12, 64),
      shape_of(192, 1, 130, {KvLayoutKind::kPaged, 64}, kOn),
      shape_of(256, 2, 130, {KvLayoutKind::kRing, 196}, kOn),
      shape_of(512, 1, 70),
      shape_of(64, 32, 40, {KvLayoutKind::kRing, 105}),
  };
  all[1].dtype = Dtype::kF16;
  all[1].sinks = kOn;
  all[2].softcap = kOn;
  all[3].dtype = Dtype::kF16;
  all[5].softcap = kOn;
  all[5].sinks = kOn;
  all[7].checked = kOn;
  return all;
}

/// Three sequences in one launch; few rows where the ratio makes many heads.
PrefillProblem problem_of(const WindowRowsShape& shape) {
  if (shape.gqa_ratio >= 8) return {shape, {{200, 42}, {0, 1}}};
  return {shape, {{200, 66}, {0, 1}, {31, 40}}, shape.head_dim == 64 ? 2 : 1};
}

}  // namespace

TEST_CASE("an mma32 prefill gives the reference's bits, from the generic kernel too",
          "[runtime][mma32]") {
  for (const WindowRowsShape& shape : shapes()) {
    CAPTURE(shape.head_dim, shape.gqa_ratio, shape.window);
    PrefillProblem problem = problem_of(shape);
    const PrefillKernel kernel(shape);
    const auto plain = problem.run(kernel, problem.whole(), false);
    CHECK(differences(plain, problem.expected<Reference>(false)) == 0);
    problem.add_image();
    const auto image = problem.run(kernel, problem.whole());
    CHECK(differences(image, problem.expected<Reference>()) == 0);
    CHECK(differences(image, plain) > 0);
    const PrefillKernel generic(shape, {{}, Switch::kOn});
    CHECK(differences(problem.run(generic, problem.whole()), image) == 0);
  }
}

TEST_CASE("an mma32 prefill on sm_80's step gives the reference's bits on that step",
          "[runtime][mma32]") {
  const WindowRowsShape shape = shape_of(192, 1, 50, {}, Switch::kOn);
  const PrefillProblem problem(shape, {{90, 20}});
  const PrefillKernel kernel(shape, {}, test::host_device(), "-DBROACH_MMA_STEP_TWO_K8");
  const auto out = problem.run(kernel, problem.whole(), false);
  CHECK(differences(out, problem.expected<Reference>(false, true)) == 0);
  CHECK(differences(out, problem.expected<Reference>(false)) > 0);
}

TEST_CASE("each planted fault of mma32's prefill changes bits", "[runtime][mma32]") {
  WindowRowsShape shape = shape_of(64, 2, 150, {KvLayoutKind::kPaged, 24}, Switch::kOn);
  shape.sinks = Switch::kOn;
  PrefillProblem problem(shape, {{250, 64}}, 2);  // Two tiles combine to the same bits either way.
  problem.add_image();
  const std::string control = GENERATE(
      "window_early", "combine_reversed", "rescale_dropped", "p_rounded", "low_half_dropped",
      "hi_ignored", "sink_left_out", "page_off_by_one", "ratio_off_by_one", "output_toward_zero");
  CAPTURE(control);
  const PrefillKernel kernel(shape, {control, Switch::kOff});
  CHECK(differences(problem.run(kernel, problem.whole()), problem.expected<Reference>()) > 0);
}

TEST_CASE("an mma32 prefill has the host's bits on a CUDA device", "[runtime][mma32][gpu]") {
  const auto cuda = runtime::open_device("cuda");
  if (!cuda) BROACH_SKIP(cuda.error().message);
  for (const WindowRowsShape& shape : shapes()) test::check_device_bits(**cuda, problem_of(shape));
}

}  // namespace broach
