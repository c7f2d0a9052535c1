// mma32's prefill by bits: on the host against the arithmetic one row at a time, on a GPU against
// the host. prefill_promises_test.cpp has what it promises wherever and beside whatever a row is
// computed.
#include "tests/reference/mma_steps.hpp"
#include "tests/runtime/window_rows/made_problem.hpp"

namespace broach::test {
namespace {

WindowRowsShape shape_of(std::uint32_t head_dim, std::uint32_t ratio, std::uint32_t window,
                         KvLayout layout = {}, Switch p32 = Switch::kOff) {
  return prefill_shape(Arith::kMma32, head_dim, ratio, window, layout, p32);
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

/// Three sequences in one launch, the first with an image; few rows where the ratio makes many
/// heads.
Problem problem_of(const WindowRowsShape& shape) {
  const std::vector<Chunk> sequences = shape.gqa_ratio >= 8
                                           ? std::vector<Chunk>{{200, 42}, {0, 1}}
                                           : std::vector<Chunk>{{200, 66}, {0, 1}, {31, 40}};
  const bool few_heads = shape.head_dim == 64 && shape.gqa_ratio < 8;
  return made(prefill_of(shape, sequences, Image::kRows5To40, few_heads ? 2 : 1));
}

}  // namespace

TEST_CASE("an mma32 prefill gives the reference's bits, from the generic kernel too",
          "[runtime][mma32]") {
  for (const WindowRowsShape& shape : shapes()) {
    CAPTURE(shape.head_dim, shape.gqa_ratio, shape.window);
    const Problem problem = problem_of(shape);
    const Problem own = without_image(problem);
    const Kernel kernel = kernel_of(shape);
    const Outputs plain = run(kernel, own);
    CHECK(differences(plain, mma_steps_reference(own)) == 0);
    const Outputs image = run(kernel, problem);
    CHECK(differences(image, mma_steps_reference(problem)) == 0);
    CHECK(differences(image, plain) > 0);
    CHECK(differences(run(kernel_of(shape, {{}, Switch::kOn}), problem), image) == 0);
  }
}

TEST_CASE("an mma32 prefill on sm_80's step gives the reference's bits on that step",
          "[runtime][mma32]") {
  using specializer::MmaStep;
  const Problem problem = made(prefill_of(shape_of(192, 1, 50, {}, Switch::kOn), {{90, 20}}));
  const Outputs out = run(kernel_of(problem.shape, {}, bench_of("host:step=k8")), problem);
  CHECK(differences(out, mma_steps_reference(problem, MmaStep::kTwoK8)) == 0);
  CHECK(differences(out, mma_steps_reference(problem, MmaStep::kOneK16)) > 0);
}

// The contract's quick sweep sees each by its gate.
TEST_CASE("each planted fault of mma32's prefill changes bits", "[runtime][mma32][slow]") {
  WindowRowsShape shape = shape_of(64, 2, 150, {KvLayoutKind::kPaged, 24}, Switch::kOn);
  shape.sinks = Switch::kOn;
  // Two tiles combine to the same bits either way.
  const Problem problem = made(prefill_of(shape, {{250, 64}}, Image::kRows5To40, 2));
  const std::string control = GENERATE(
      "window_early", "combine_reversed", "rescale_dropped", "p_rounded", "low_half_dropped",
      "hi_ignored", "sink_left_out", "page_off_by_one", "ratio_off_by_one", "output_toward_zero");
  CAPTURE(control);
  const Kernel kernel = kernel_of(shape, {control, Switch::kOff});
  CHECK(differences(run(kernel, problem), mma_steps_reference(problem)) > 0);
}

TEST_CASE("an mma32 prefill has the host's bits on a CUDA device", "[runtime][mma32][gpu]") {
  const Bench& cuda = bench_of("cuda");
  if (cuda.device == nullptr) BROACH_SKIP("no CUDA device");
  for (const WindowRowsShape& shape : shapes()) check_device_bits(cuda, problem_of(shape));
}

}  // namespace broach::test
