// tile64's prompt on the host target, by bits: against the arithmetic one row at a time, against
// the decode form, and against itself however a chunk is cut.
#include "tests/kernel_src/tile64_reference.hpp"
#include "tests/runtime/window_rows/prompt_problem.hpp"
#include "tests/runtime/window_rows/tile64_problem.hpp"

namespace broach {
namespace {

using test::Chunk;
using test::differences;
using test::PromptKernel;
using test::PromptProblem;
using Reference = test::Tile64Reference;

WindowRowsShape shape_of(std::uint32_t head_dim, std::uint32_t ratio, std::uint32_t window,
                         KvLayout layout = {}, Switch p32 = Switch::kOff) {
  return test::prompt_shape(Arith::kTile64, head_dim, ratio, window, layout, p32);
}

WindowRowsShape as_decode(WindowRowsShape shape) {
  shape.form = Form::kDecode;
  return shape;
}

}  // namespace

TEST_CASE("a prompt gives the reference's bits, and so does the decode of each of its rows",
          "[runtime][tile64]") {
  std::vector<WindowRowsShape> shapes;
  shapes.push_back(shape_of(64, 2, 100, {KvLayoutKind::kRing, 200}, Switch::kOn));
  shapes.push_back(shape_of(80, 3, 0, {KvLayoutKind::kPaged, 24}));
  shapes.back().dtype = Dtype::kF16;
  shapes.back().sinks = Switch::kOn;
  shapes.push_back(shape_of(256, 1, 130, {}, Switch::kOn));
  shapes.push_back(shape_of(512, 1, 70));
  shapes.back().checked = Switch::kOn;
  for (const WindowRowsShape& shape : shapes) {
    CAPTURE(shape.head_dim, shape.window);
    PromptProblem problem(shape, {{200, 66}, {0, 1}, {31, 40}});
    const PromptKernel kernel(shape);
    const auto plain = problem.run(kernel, problem.whole(), false);
    CHECK(differences(plain, problem.expected<Reference>(false)) == 0);
    CHECK(differences(problem.decode(*test::Tile64Kernel(as_decode(shape)).launch()), plain) == 0);
    const PromptKernel generic(shape, {{}, Switch::kOn});
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
  const PromptProblem problem(shape, {{200, 66}, {31, 40}});
  const auto out = problem.run(PromptKernel(shape, {}, **device), problem.whole(), false);
  CHECK(differences(out, problem.expected<Reference>(false, true)) == 0);
  const test::Tile64Kernel decode(as_decode(shape), {}, **device);
  CHECK(differences(problem.decode(*decode.launch()), out) == 0);
  CHECK(differences(out, problem.expected<Reference>(false)) > 0);
}

TEST_CASE("a prompt's bits do not depend on how it is cut", "[runtime][tile64]") {
  const WindowRowsShape shape = shape_of(64, 1, 90, {KvLayoutKind::kRing, 180}, Switch::kOn);
  PromptProblem problem(shape, {{250, 70}});
  const PromptKernel kernel(shape);
  const auto whole = problem.run(kernel, problem.whole(), false);
  for (int cut = 1; cut < 70; ++cut) {  // every residue modulo 64
    CAPTURE(cut);
    CHECK(differences(problem.run(kernel, {{0, 0, cut}, {0, cut, 70 - cut}}, false), whole) == 0);
  }
  std::vector<Chunk> rows;
  for (int row = 0; row < 70; ++row) rows.push_back({0, row, 1});
  CHECK(differences(problem.run(kernel, rows, false), whole) == 0);
}

TEST_CASE("rows that do not see a non-finite value, key or query keep their bits",
          "[runtime][tile64]") {
  const Switch p32 = GENERATE(Switch::kOff, Switch::kOn);
  const std::uint32_t head_dim = GENERATE(64U, 512U);  // One piece; four, two warps a band.
  const WindowRowsShape shape = shape_of(head_dim, 1, 60, {}, p32);
  const PromptProblem clean(shape, {{130, 70}});
  const PromptKernel kernel(shape);
  const auto expected = clean.expected<Reference>(false);
  constexpr std::uint16_t kPlants[] = {0x7F80, 0xFF80, 0x7FC0};
  for (const std::uint16_t plant : kPlants) {
    PromptProblem problem = clean;
    const int seen_late = 165;   // by rows 35 on
    const int seen_early = 100;  // by rows up to 29
    problem.value(0, seen_late, 7) = plant;
    problem.value(0, seen_early, head_dim - 3) = plant;
    problem.query(33, 3) = plant;
    const auto out = problem.run(kernel, problem.whole(), false);
    for (int row = 0; row < 70; ++row) {
      CAPTURE(plant, row);
      const int position = 130 + row;
      const bool sees = position >= seen_late || position - 59 <= seen_early || row == 33;
      std::size_t changed = 0;
      std::size_t non_finite = 0;
      for (std::size_t d = 0; d < head_dim; ++d) {
        const std::size_t i = static_cast<std::size_t>(row) * head_dim + d;
        changed += out[i] != expected[i];
        non_finite += (out[i] & 0x7F80U) == 0x7F80U;
      }
      if (sees) {
        CHECK(non_finite == (row == 33 ? head_dim : 1U));
      } else {
        CHECK(changed == 0);
      }
    }
  }
}

TEST_CASE("each planted fault of tile64's prompt changes bits", "[runtime][tile64]") {
  // A reversed fold is seen in about one f16 output of a thousand.
  WindowRowsShape shape = shape_of(128, 2, 240, {KvLayoutKind::kPaged, 24}, Switch::kOn);
  shape.dtype = Dtype::kF16;
  shape.sinks = Switch::kOn;
  PromptProblem problem(shape, {{300, 64}});
  problem.add_image();
  const std::string control =
      GENERATE("window_early", "fold_reversed", "fold_unscaled", "weight_rounded",
               "low_half_dropped", "hi_ignored", "sink_left_out", "page_off_by_one");
  CAPTURE(control);
  const PromptKernel kernel(shape, {control, Switch::kOff});
  CHECK(differences(problem.run(kernel, problem.whole()), problem.expected<Reference>()) > 0);
}

TEST_CASE("a tile64 prompt has the host's bits on a CUDA device", "[runtime][tile64][gpu]") {
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
  for (const WindowRowsShape& shape : shapes) {
    test::check_device_bits(**cuda, {shape, {{200, 42}, {0, 1}, {31, 9}}});
  }
}

}  // namespace broach
