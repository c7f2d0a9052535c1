// mma32's prompt by bits: on the host against the arithmetic one row at a time and against itself
// however, wherever and beside whatever a row is computed; on a GPU against the host.
#include "tests/kernel_src/mma32_reference.hpp"
#include "tests/runtime/window_rows/prompt_problem.hpp"

namespace broach {
namespace {

using test::Chunk;
using test::differences;
using test::PromptKernel;
using test::PromptProblem;
using Reference = test::Mma32Reference;

WindowRowsShape shape_of(std::uint32_t head_dim, std::uint32_t ratio, std::uint32_t window,
                         KvLayout layout = {}, Switch p32 = Switch::kOff) {
  return test::prompt_shape(Arith::kMma32, head_dim, ratio, window, layout, p32);
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
PromptProblem problem_of(const WindowRowsShape& shape) {
  if (shape.gqa_ratio >= 8) return {shape, {{200, 42}, {0, 1}}};
  return {shape, {{200, 66}, {0, 1}, {31, 40}}, shape.head_dim == 64 ? 2 : 1};
}

constexpr std::uint16_t kNan = 0x7FC0;
constexpr std::uint16_t kInfinity = 0x7F80;

}  // namespace

TEST_CASE("an mma32 prompt gives the reference's bits, from the generic kernel too",
          "[runtime][mma32]") {
  for (const WindowRowsShape& shape : shapes()) {
    CAPTURE(shape.head_dim, shape.gqa_ratio, shape.window);
    PromptProblem problem = problem_of(shape);
    const PromptKernel kernel(shape);
    const auto plain = problem.run(kernel, problem.whole(), false);
    CHECK(differences(plain, problem.expected<Reference>(false)) == 0);
    problem.add_image();
    const auto image = problem.run(kernel, problem.whole());
    CHECK(differences(image, problem.expected<Reference>()) == 0);
    CHECK(differences(image, plain) > 0);
    const PromptKernel generic(shape, {{}, Switch::kOn});
    CHECK(differences(problem.run(generic, problem.whole()), image) == 0);
  }
}

TEST_CASE("an mma32 prompt on sm_80's step gives the reference's bits on that step",
          "[runtime][mma32]") {
  const WindowRowsShape shape = shape_of(192, 1, 50, {}, Switch::kOn);
  const PromptProblem problem(shape, {{90, 20}});
  const PromptKernel kernel(shape, {}, test::host_device(), "-DBROACH_MATRIX_STEP_TWO_K8");
  const auto out = problem.run(kernel, problem.whole(), false);
  CHECK(differences(out, problem.expected<Reference>(false, true)) == 0);
  CHECK(differences(out, problem.expected<Reference>(false)) > 0);
}

TEST_CASE("an mma32 prompt's bits do not depend on how it is cut", "[runtime][mma32]") {
  const Switch p32 = GENERATE(Switch::kOff, Switch::kOn);
  const WindowRowsShape shape = shape_of(64, 1, 90, {KvLayoutKind::kRing, 180}, p32);
  const PromptProblem problem(shape, {{250, 70}});
  const PromptKernel kernel(shape);
  const auto whole = problem.run(kernel, problem.whole(), false);
  for (int cut = 1; cut < 70; ++cut) {  // every residue modulo 64
    CAPTURE(cut);
    CHECK(differences(problem.run(kernel, {{0, 0, cut}, {0, cut, 70 - cut}}, false), whole) == 0);
  }
  std::vector<Chunk> rows;
  for (int row = 0; row < 70; ++row) rows.push_back({0, row, 1});
  CHECK(differences(problem.run(kernel, rows, false), whole) == 0);
  std::reverse(rows.begin(), rows.end());
  CHECK(differences(problem.run(kernel, rows, false), whole) == 0);
}

TEST_CASE("an mma32 prompt's bits do not depend on slot, length, layout or what was there before",
          "[runtime][mma32]") {
  const WindowRowsShape shape = shape_of(64, 2, 40, {}, Switch::kOn);
  const PromptProblem problem(shape, {{130, 50}, {7, 20}});
  const PromptKernel kernel(shape);
  const auto expected = problem.expected<Reference>(false);
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto poison = static_cast<std::uint16_t>(repeat % 2 == 0 ? 0xFFFF : 0x5A5A);
    CHECK(differences(
              problem.run(kernel, problem.whole(), false, {repeat, 1 + repeat * 4, poison, poison}),
              expected) == 0);
  }
  CHECK(differences(problem.run(kernel, {{1, 0, 20}, {0, 0, 50}}, false), expected) == 0);
  for (const KvLayout layout : {KvLayout{KvLayoutKind::kRing, 89},
                                {KvLayoutKind::kRing, 333},
                                {KvLayoutKind::kPaged, 16},
                                {KvLayoutKind::kPaged, 24}}) {
    const PromptProblem other = problem.laid_out(layout);
    CHECK(differences(other.run(PromptKernel(other.shape()), other.whole(), false), expected) == 0);
  }
}

TEST_CASE("rows that do not see a non-finite value, key or query keep their mma32 bits",
          "[runtime][mma32]") {
  const Switch p32 = GENERATE(Switch::kOff, Switch::kOn);
  const WindowRowsShape shape = shape_of(64, 1, 60, {}, p32);
  const PromptProblem clean(shape, {{130, 70}});
  const PromptKernel kernel(shape);
  const auto expected = clean.expected<Reference>(false);
  constexpr std::uint16_t kPlants[] = {kInfinity, 0xFF80, kNan};
  for (const std::uint16_t plant : kPlants) {
    PromptProblem problem = clean;
    const int late_value = 165;   // seen by rows 35 on
    const int early_value = 100;  // by rows up to 29
    const int late_key = 198;     // by rows 68 on
    problem.value(0, late_value, 7) = plant;
    problem.value(0, early_value, 9) = plant;
    problem.key(0, late_key, 5) = plant;
    problem.query(33, 3) = plant;
    const auto out = problem.run(kernel, problem.whole(), false);
    std::size_t wrong = 0;
    for (int row = 0; row < 70; ++row) {
      CAPTURE(plant, row);
      const int position = 130 + row;
      const bool sees_value = position >= late_value || position - 59 <= early_value;
      std::size_t changed = 0;
      std::size_t non_finite = 0;
      for (std::size_t d = 0; d < 64; ++d) {
        const std::size_t i = static_cast<std::size_t>(row) * 64 + d;
        changed += out[i] != expected[i];
        non_finite += (out[i] & 0x7F80U) == 0x7F80U;
      }
      if (row == 33) {
        CHECK(non_finite == 64);
      } else if (position >= late_key) {
        CHECK(non_finite >= 1);
      } else if (sees_value) {
        CHECK(non_finite == 1);
      } else {
        wrong += changed;
      }
    }
    CHECK(wrong == 0);
    // Alone and in pieces, every row has the bits it has beside the others.
    std::vector<Chunk> alone;
    for (int row = 0; row < 70; ++row) alone.push_back({0, row, 1});
    CHECK(differences(problem.run(kernel, alone, false), out) == 0);
    for (const int cut : {1, 29, 30, 33, 34, 35, 64}) {
      CAPTURE(cut);
      CHECK(differences(problem.run(kernel, {{0, 0, cut}, {0, cut, 70 - cut}}, false), out) == 0);
    }
  }
}

TEST_CASE("a weight that fp32 loses gives an infinite value its float64 class in mma32",
          "[runtime][mma32]") {
  const WindowRowsShape shape = shape_of(64, 2, 40, {}, Switch::kOn);
  PromptProblem problem(shape, {{130, 20}});
  // Row 10 and head 1 alone score this key so low that fp32's weight is 0; infinity times that is
  // NaN, and float64's weight is not 0.
  const int row = 10;
  for (std::size_t d = 0; d < 64; ++d) {
    problem.key(0, 135, d) = 0xC040;      // -3
    problem.query(row, 64 + d) = 0x4040;  // 3: a score of -213
  }
  problem.value(0, 135, 2) = kInfinity;
  const PromptKernel kernel(shape);
  const auto out = problem.run(kernel, problem.whole(), false);
  CHECK(out[static_cast<std::size_t>(row) * 128 + 64 + 2] == kInfinity);
  CHECK((out[static_cast<std::size_t>(row) * 128 + 64 + 3] & 0x7F80U) != 0x7F80U);
}

TEST_CASE("each planted fault of mma32's prompt changes bits", "[runtime][mma32]") {
  WindowRowsShape shape = shape_of(64, 2, 150, {KvLayoutKind::kPaged, 24}, Switch::kOn);
  shape.sinks = Switch::kOn;
  PromptProblem problem(shape, {{250, 64}});  // Two tiles fold to the same bits either way.
  problem.add_image();
  const std::string control =
      GENERATE("window_early", "fold_reversed", "fold_unscaled", "weight_rounded",
               "low_half_dropped", "hi_ignored", "sink_left_out", "page_off_by_one");
  CAPTURE(control);
  const PromptKernel kernel(shape, {control, Switch::kOff});
  CHECK(differences(problem.run(kernel, problem.whole()), problem.expected<Reference>()) > 0);
}

TEST_CASE("a whole-block re-run gives mma32 neighbours float64's bits", "[runtime][mma32]") {
  WindowRowsShape shape = shape_of(512, 1, 60);
  shape.dtype = Dtype::kF16;
  PromptProblem problem(shape, {{130, 64}});
  problem.query(33, 3) = 0x7E00;
  const auto sound = problem.run(PromptKernel(shape), problem.whole(), false);
  const PromptKernel faulty(shape, {"whole_block_rerun", Switch::kOff});
  CHECK(differences(problem.run(faulty, problem.whole(), false), sound) > 0);
}

TEST_CASE("an mma32 prompt has the host's bits on a CUDA device", "[runtime][mma32][gpu]") {
  const auto cuda = runtime::open_device("cuda");
  if (!cuda) BROACH_SKIP(cuda.error().message);
  for (const WindowRowsShape& shape : shapes()) test::check_device_bits(**cuda, problem_of(shape));
}

}  // namespace broach
