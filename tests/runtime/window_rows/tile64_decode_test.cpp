#include <algorithm>
#include <limits>
#include <memory>

#include "kernel_src/common/half.cuh"
#include "kernel_src/window_rows/params.h"
#include "tests/reference/mma_steps.hpp"
#include "tests/runtime/window_rows/made_problem.hpp"

// tile64's decode on the host target, by bits: the kernel source that the GPUs run, compiled and
// run through the project's own path, against the arithmetic written down one row at a time.
namespace broach::test {
namespace {

using contract::window_rows::Decoder;
using runtime::Tile64Schedule;
using Combine = Tile64Schedule::Combine;

constexpr std::int32_t kPositions = 500;

WindowRowsShape shape_of(std::uint32_t head_dim, std::uint32_t ratio, std::uint32_t window,
                         KvLayout layout = {}) {
  WindowRowsShape shape;
  shape.head_dim = head_dim;
  shape.gqa_ratio = ratio;
  shape.window = window;
  shape.kv_layout = layout;
  shape.arith = Arith::kTile64;
  return shape;
}

constexpr KvLayout kRing300{KvLayoutKind::kRing, 300};
constexpr KvLayout kPages24{KvLayoutKind::kPaged, 24};

/// Rows around tile edges, in three streams.
std::vector<RowAt> edge_rows() {
  return {{0, 0}, {1, 63}, {2, 64}, {0, 127}, {1, 200}, {2, kPositions - 1}};
}

/// Rows one a stream, so that a ring holds each row's keys.
std::vector<RowAt> ring_rows() { return {{0, 5}, {1, 64}, {2, 311}, {3, kPositions - 1}}; }

const std::vector<Tile64Schedule> kSchedules = {
    {Combine::kInCta, 1},    {Combine::kByLastCta, 1}, {Combine::kByLastCta, 3},
    {Combine::kByKernel, 1}, {Combine::kByKernel, 2},  {Combine::kByLastCta, 100}};

Problem problem_of(const WindowRowsShape& shape, std::vector<RowAt> rows) {
  return made(decode_of(shape, std::move(rows)));
}

Outputs run_as(const Kernel& kernel, const Tile64Schedule& schedule, const Problem& problem) {
  auto decoder = kernel.decoder(schedule);
  REQUIRE(decoder);
  return run(*decoder, problem);
}

/// Launches three times with the same parameters, launch number included, as a captured graph does
/// when it is replayed; the outputs are poisoned in between.
class ReplayingFunction final : public runtime::Function {
 public:
  explicit ReplayingFunction(const runtime::Function& real) noexcept : real_(real) {}
  Result<void> launch(const runtime::LaunchConfig& config) const override {
    const auto& p = static_cast<const BroachWindowRowsTile64Decode*>(config.params)->decode;
    for (int i = 0; i < 2; ++i) {
      if (auto launched = real_.launch(config); !launched) return launched;
      std::fill_n(static_cast<std::uint16_t*>(p.attention.out),
                  p.attention.rows * p.attention.out_row_stride, std::uint16_t{0x5a5a});
    }
    return real_.launch(config);
  }
  Result<LaunchLimits> live_limits() const override { return real_.live_limits(); }

 private:
  const runtime::Function& real_;
};

class Replaying final : public runtime::Module {
 public:
  explicit Replaying(runtime::Module& real) noexcept : real_(real) {}
  Result<const runtime::Function*> function(std::string_view name) override {
    auto real = real_.function(name);
    // The combining kernel alone writes the outputs of its schedule: it follows its decode
    // unpoisoned.
    if (!real || name.find("combine") != std::string_view::npos) return real;
    replaying_ = std::make_unique<ReplayingFunction>(**real);
    return static_cast<const runtime::Function*>(replaying_.get());
  }

 private:
  runtime::Module& real_;
  std::unique_ptr<ReplayingFunction> replaying_;
};

// Every head_dim but one, every option, layouts whose tiles wrap or cross pages, ratios up to 32.
std::vector<WindowRowsShape> scheduled_shapes(Arith arith) {
  std::vector<WindowRowsShape> shapes;
  shapes.push_back(shape_of(64, 1, 0));
  shapes.push_back(shape_of(128, 2, 200, kRing300));
  shapes.push_back(shape_of(80, 5, 0));
  shapes.back().dtype = Dtype::kF16;
  shapes.back().p32 = Switch::kOn;
  shapes.back().softcap = Switch::kOn;
  shapes.back().sinks = Switch::kOn;
  shapes.push_back(shape_of(112, 12, 130, kPages24));
  shapes.back().sinks = Switch::kOn;
  shapes.push_back(shape_of(256, 2, 129, kRing300));
  shapes.back().p32 = Switch::kOn;
  shapes.push_back(shape_of(192, 3, 65));
  shapes.push_back(shape_of(512, 32, 70, kPages24));
  shapes.back().p32 = Switch::kOn;
  shapes.back().checked = Switch::kOn;
  for (WindowRowsShape& shape : shapes) shape.arith = arith;
  return shapes;
}

void check_schedules(const WindowRowsShape& shape) {
  CAPTURE(shape.arith, shape.head_dim, shape.gqa_ratio, shape.window);
  const Problem problem = problem_of(shape, ring_rows());
  const Kernel kernel = kernel_of(shape);
  const Outputs expected = mma_steps_reference(problem);
  for (const Tile64Schedule& schedule : kSchedules) {
    CAPTURE(static_cast<int>(schedule.combine), schedule.tiles_a_split);
    CHECK(differences(run_as(kernel, schedule, problem), expected) == 0);
  }
  const Kernel generic = kernel_of(shape, {{}, Switch::kOn});
  CHECK(differences(run_as(generic, Tile64Schedule{}, problem), expected) == 0);
  CHECK(differences(run_as(generic, kSchedules[2], problem), expected) == 0);
}

}  // namespace

TEST_CASE("every schedule of tiles gives the reference's bits", "[runtime][tile64]") {
  for (const WindowRowsShape& shape : scheduled_shapes(Arith::kTile64Ex2)) check_schedules(shape);
}

// One source with either exponential: two shapes show that a schedule takes the right one.
TEST_CASE("every schedule of tiles gives the reference's bits by tile64's own exponential",
          "[runtime][tile64]") {
  const auto shapes = scheduled_shapes(Arith::kTile64);
  check_schedules(shapes[0]);
  check_schedules(shapes[2]);
}

TEST_CASE("every schedule of tiles gives the reference's bits by tile64 for every shape",
          "[runtime][tile64][slow]") {
  for (const WindowRowsShape& shape : scheduled_shapes(Arith::kTile64)) check_schedules(shape);
}

// They part by an fp32 ulp, which a 16-bit P or output mostly rounds away: p32 and many outputs
// show it.
TEST_CASE("the two exponentials of tile64 give different bits", "[runtime][tile64]") {
  WindowRowsShape shape = shape_of(512, 32, 0);
  shape.dtype = Dtype::kF16;
  shape.p32 = Switch::kOn;
  Problem problem = problem_of(shape, ring_rows());
  const Outputs of_exp32 = mma_steps_reference(problem);
  problem.shape.arith = Arith::kTile64Ex2;
  CHECK(differences(of_exp32, mma_steps_reference(problem)) > 0);
}

TEST_CASE("a negative scale and none are served as any other", "[runtime][tile64]") {
  for (const Arith arith : {Arith::kTile64, Arith::kTile64Ex2}) {
    for (const float scale : {-0.37F, 0.0F, 0x1p-149F}) {
      CAPTURE(arith, scale);
      WindowRowsShape shape = shape_of(64, 2, 100);
      shape.arith = arith;
      Problem problem = problem_of(shape, edge_rows());
      problem.scale = scale;
      const Outputs expected = mma_steps_reference(problem);
      const Kernel kernel = kernel_of(shape);
      CHECK(differences(run_as(kernel, kSchedules[0], problem), expected) == 0);
      CHECK(differences(run_as(kernel, kSchedules[1], problem), expected) == 0);
    }
  }
}

TEST_CASE("a captured launch replays to the same bits over the workspace that it left",
          "[runtime][tile64]") {
  const WindowRowsShape shape = shape_of(64, 3, 0);
  const Kernel kernel = kernel_of(shape);
  const Problem problem = problem_of(shape, edge_rows());
  Replaying module(*kernel.loaded().module);
  for (const Tile64Schedule& schedule : kSchedules) {
    CAPTURE(static_cast<int>(schedule.combine), schedule.tiles_a_split);
    auto launch = runtime::make_tile64_launch(shape, kernel.plan(), module, 1, schedule);
    REQUIRE(launch);
    const Decoder decoder = contract::window_rows::decoder_of(
        std::shared_ptr<const runtime::DecodeLaunch>(std::move(*launch)));
    CHECK(differences(run(decoder, problem), mma_steps_reference(problem)) == 0);
  }
}

TEST_CASE(
    "a row's bits do not depend on batch, index, slot, length, layout or what it does not see",
    "[runtime][tile64]") {
  const WindowRowsShape linear = shape_of(64, 3, 100);
  const Kernel kernel = kernel_of(linear);
  const Recipe recipe = decode_of(linear, edge_rows());
  const Problem problem = made(recipe);
  const Problem elsewhere = in_slots(recipe, {4, 6, 5});
  const Problem longer = in_slots(recipe, {}, 16 * kPositions);
  const Outputs together = run(kernel, problem);
  REQUIRE(differences(together, mma_steps_reference(problem)) == 0);
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    CAPTURE(row);
    const Outputs alone = row_of(problem, together, row);
    CHECK(run(kernel, problem.take({row})) == alone);
    // At every index of a batch of 17, among copies of another row.
    std::vector<std::int32_t> crowd(17, (row + 1) % problem.rows);
    crowd[static_cast<std::size_t>(row) * 3] = row;
    const Problem crowded = problem.take(crowd);
    CHECK(row_of(crowded, run(kernel, crowded), row * 3) == alone);
    CHECK(run(kernel, elsewhere.take({row})) == alone);
    CHECK(run(kernel, longer.take({row})) == alone);
    const Problem one = problem.take({row});
    CHECK(run(kernel, with_unseen(one, 0x7F80)) == alone);  // infinities around it
    CHECK(run(kernel, with_unseen(one, 0), Poison::kFinite) == alone);
  }
  // The layouts hold the same keys; 300 is no multiple of 64, so tiles wrap inside a ring.
  const Recipe streams = decode_of(linear, ring_rows());
  const Outputs expected = mma_steps_reference(made(streams));
  for (const KvLayout layout : {KvLayout{}, kRing300, KvLayout{KvLayoutKind::kRing, 100}, kPages24,
                                KvLayout{KvLayoutKind::kPaged, 1}}) {
    CAPTURE(static_cast<int>(layout.kind), layout.length);
    const Problem other = laid_out(streams, layout);
    CHECK(differences(run(kernel_of(other.shape), other), expected) == 0);
  }
}

TEST_CASE("a non-finite head is float64's and its neighbours keep their bits",
          "[runtime][tile64]") {
  const WindowRowsShape shape = shape_of(64, 3, 100);
  const Kernel kernel = kernel_of(shape);
  const Problem clean = problem_of(shape, {{0, 150}, {1, 150}, {2, 70}});
  const Outputs expected = mma_steps_reference(clean);
  const auto infinity = std::uint16_t{0x7F80};
  for (const Tile64Schedule& schedule : {kSchedules[0], kSchedules[1], kSchedules[3]}) {
    CAPTURE(static_cast<int>(schedule.combine));
    SECTION("a NaN query takes its own head only " +
            std::to_string(static_cast<int>(schedule.combine))) {
      Problem problem = clean;
      query_at(problem, 1, 4)[7] = 0x7FC0;
      const Outputs out = run_as(kernel, schedule, problem);
      const std::size_t head = (1 * 6 + 4) * 64;
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (i >= head && i < head + 64) {
          REQUIRE(out[i] == 0x7FFF);
        } else {
          REQUIRE(out[i] == expected[i]);
        }
      }
    }
    SECTION("an infinite value makes its own dim infinite and leaves the others finite " +
            std::to_string(static_cast<int>(schedule.combine))) {
      Problem problem = clean;
      value_at(problem, 0, 120, 1)[9] = infinity;           // seen by row 0
      value_at(problem, 1, 50)[3] = infinity;               // just before row 1's window
      value_at(problem, 2, 71)[3] = std::uint16_t{0x7FC0};  // just after row 2
      const Outputs out = run_as(kernel, schedule, problem);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t head = i / 64;
        CAPTURE(i);
        if (head >= 3 && head < 6) {  // row 0, KV head 1: computed again in float64
          const float value = widen<Half::kBf16>(out[i]);
          if (i % 64 == 9) {
            REQUIRE(value == std::numeric_limits<float>::infinity());
          } else {
            const float fp32 = widen<Half::kBf16>(expected[i]);
            REQUIRE(std::fabs(value - fp32) <= 0.01F * std::fabs(fp32) + 1e-3F);
          }
        } else {
          REQUIRE(out[i] == expected[i]);
        }
      }
    }
    SECTION("infinities of both signs in one column are NaN " +
            std::to_string(static_cast<int>(schedule.combine))) {
      Problem problem = clean;
      value_at(problem, 0, 120)[9] = infinity;
      value_at(problem, 0, 60)[9] = std::uint16_t{0xFF80};
      const Outputs out = run_as(kernel, schedule, problem);
      for (std::size_t head = 0; head < 3; ++head) CHECK(out[head * 64 + 9] == 0x7FFF);
      CHECK(row_of(problem, out, 1) == row_of(problem, expected, 1));
    }
  }
}

TEST_CASE("an infinite value under a weight that only float64 holds is infinite",
          "[runtime][tile64]") {
  // One key scores about 200 above the rest: their fp32 weights are 0, float64's are e^-200.
  const WindowRowsShape shape = shape_of(64, 1, 0);
  const Kernel kernel = kernel_of(shape);
  Problem problem = problem_of(shape, {{0, 90}});
  problem.scale = 1.0F;
  constexpr std::uint16_t kOne = 0x3F80;
  constexpr std::uint16_t kThree = 0x4048;  // 3.125
  for (std::int32_t head = 0; head < 2; ++head) {
    for (auto& q : query_at(problem, 0, head)) q = kOne;
    for (std::int32_t p = 0; p <= 90; ++p) {
      for (auto& k : key_at(problem, 0, p, head)) k = p == 40 ? kThree : std::uint16_t{0};
    }
  }
  value_at(problem, 0, 80)[5] = 0x7F80;
  for (const Tile64Schedule& schedule : {kSchedules[0], kSchedules[1]}) {
    const Outputs out = run_as(kernel, schedule, problem);
    CHECK(out[5] == 0x7F80);
    CHECK(out[6] == value_at(problem, 0, 40)[6]);
    CHECK(out[64 + 5] == value_at(problem, 0, 40, 1)[5]);
  }
}

TEST_CASE("a checked kernel names the argument that is out of range", "[runtime][tile64]") {
  WindowRowsShape shape = shape_of(64, 1, 0, kPages24);
  shape.checked = Switch::kOn;
  Problem problem = problem_of(shape, {{1, 40}});  // Two slots of two pages.
  REQUIRE(problem.length == 48);
  struct Fault {
    std::int32_t position, slot, page;
    std::string words;
  };
  const Fault fault = GENERATE(values<Fault>({{48, 0, 0, "position"},
                                              {-1, 0, 0, "position"},
                                              {3, 2, 0, "slot"},
                                              {3, -1, 0, "slot"},
                                              {40, 1, -7, "page"}}));
  problem.positions[0] = fault.position;
  problem.slots[0] = fault.slot;
  problem.page_table[3] = fault.page;
  const auto ran = kernel_of(shape).run(problem);
  REQUIRE_FALSE(ran);
  CHECK(ran.error().message.find(fault.words) != std::string::npos);
}

TEST_CASE("a checked decode of tile64 refuses a position past the launch's max_keys",
          "[runtime][tile64]") {
  WindowRowsShape shape = shape_of(64, 1, 0);
  shape.arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2);
  shape.checked = Switch::kOn;
  Problem problem = problem_of(shape, {{0, 399}, {1, 50}});
  problem.max_keys = 100;
  const auto ran = kernel_of(shape).run(problem);
  REQUIRE_FALSE(ran);
  INFO(ran.error().message);
  CHECK(ran.error().code == ErrorCode::kInvalidArgument);
  CHECK(ran.error().message.find("past the launch's max_keys: 399") != std::string::npos);
}

// The contract's quick sweep sees each by its gate.
TEST_CASE("each planted fault of tile64's decode changes bits", "[runtime][tile64][slow]") {
  WindowRowsShape shape = shape_of(64, 2, 100, kPages24);
  shape.p32 = Switch::kOn;
  shape.sinks = Switch::kOn;
  const Problem problem = problem_of(shape, {{0, 150}, {1, 350}, {2, 499}});
  const Outputs expected = mma_steps_reference(problem);
  const std::string control =
      GENERATE("window_early", "rescale_dropped", "low_half_dropped", "sink_left_out",
               "page_off_by_one", "ratio_off_by_one", "output_toward_zero");
  CAPTURE(control);
  const Kernel kernel = kernel_of(shape, {control, Switch::kOff});
  CHECK(differences(run_as(kernel, Tile64Schedule{}, problem), expected) > 0);
  CHECK(differences(run_as(kernel, kSchedules[1], problem), expected) > 0);
}

TEST_CASE("tiles combined in the wrong order change bits", "[runtime][tile64]") {
  // Another order moves fp32 sums by units in the last place: one f16 output in some thousands then
  // rounds the other way, so there must be many.
  WindowRowsShape shape = shape_of(256, 8, 0);
  shape.dtype = Dtype::kF16;
  const Problem problem = problem_of(shape, {{0, 430}, {0, 450}, {0, 470}, {0, 499}});
  const Outputs right = run_as(kernel_of(shape), kSchedules[1], problem);
  const Kernel kernel = kernel_of(shape, {"combine_reversed", Switch::kOff});
  CHECK(differences(run_as(kernel, kSchedules[1], problem), right) > 0);
}

TEST_CASE("a whole-block re-run is seen by the neighbours", "[runtime][tile64]") {
  const WindowRowsShape shape = shape_of(64, 2, 0);
  Problem problem = problem_of(shape, {{0, 450}});
  const Outputs clean = mma_steps_reference(problem);
  query_at(problem, 0, 0)[3] = 0x7FC0;
  const auto others = [&](const Outputs& out) {
    return differences({out.begin() + 64, out.begin() + 128},
                       {clean.begin() + 64, clean.begin() + 128});
  };
  CHECK(others(run_as(kernel_of(shape), kSchedules[0], problem)) == 0);
  const Kernel faulty = kernel_of(shape, {"whole_block_rerun", Switch::kOff});
  CHECK(others(run_as(faulty, kSchedules[0], problem)) > 0);
}

}  // namespace broach::test
