#include <algorithm>
#include <limits>
#include <memory>

#include "kernel_src/window_rows/params.h"

#include "tests/runtime/window_rows/tile64_problem.hpp"

// tile64's decode on the host target, by bits: the kernel source that the GPUs run, compiled and
// run through the project's own path, against the arithmetic written down one row at a time.
namespace broach {
namespace {

using runtime::Tile64Schedule;
using test::DecodeRow;
using test::Tile64Kernel;
using test::Tile64Problem;
using Combine = Tile64Schedule::Combine;

constexpr int kPositions = 500;

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
std::vector<DecodeRow> edge_rows() {
  return {{0, 0}, {1, 63}, {2, 64}, {0, 127}, {1, 200}, {2, kPositions - 1}};
}

/// Rows one a stream, so that a ring holds each row's keys.
std::vector<DecodeRow> ring_rows() { return {{0, 5}, {1, 64}, {2, 311}, {3, kPositions - 1}}; }

const std::vector<Tile64Schedule> kSchedules = {
    {Combine::kInCta, 1},    {Combine::kByLastCta, 1}, {Combine::kByLastCta, 3},
    {Combine::kByKernel, 1}, {Combine::kByKernel, 2},  {Combine::kByLastCta, 100}};

std::size_t differences(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) {
  REQUIRE(a.size() == b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

/// The outputs of one row of a batch.
std::vector<std::uint16_t> row_of(const std::vector<std::uint16_t>& out, std::size_t row,
                                  const Tile64Problem& problem) {
  const std::size_t elems = static_cast<std::size_t>(problem.heads()) * problem.dims();
  const auto from = out.begin() + static_cast<std::ptrdiff_t>(row * elems);
  return {from, from + static_cast<std::ptrdiff_t>(elems)};
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
    // The combine kernel alone writes the outputs of its schedule: it follows its decode
    // unpoisoned.
    if (!real || name.find("combine") != std::string_view::npos) return real;
    replaying_ = std::make_unique<ReplayingFunction>(**real);
    return static_cast<const runtime::Function*>(replaying_.get());
  }

 private:
  runtime::Module& real_;
  std::unique_ptr<ReplayingFunction> replaying_;
};

}  // namespace

TEST_CASE("every schedule of tiles gives the reference's bits", "[runtime][tile64]") {
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
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2);
  for (WindowRowsShape shape : shapes) {
    shape.arith = arith;
    CAPTURE(shape.arith, shape.head_dim, shape.gqa_ratio, shape.window);
    const Tile64Problem problem(shape, ring_rows(), kPositions);
    const Tile64Kernel kernel(shape);
    const auto expected = problem.expected();
    for (const Tile64Schedule& schedule : kSchedules) {
      CAPTURE(static_cast<int>(schedule.combine), schedule.tiles_a_split);
      CHECK(differences(problem.run(*kernel.launch(schedule)), expected) == 0);
    }
    const Tile64Kernel generic(shape, {{}, Switch::kOn});
    CHECK(differences(problem.run(*generic.launch(Tile64Schedule{})), expected) == 0);
    CHECK(differences(problem.run(*generic.launch(kSchedules[2])), expected) == 0);
  }
}

TEST_CASE("the two exponentials of tile64 give different bits", "[runtime][tile64]") {
  WindowRowsShape shape = shape_of(64, 1, 0);
  shape.dtype = Dtype::kF16;
  const Tile64Problem problem(shape, ring_rows(), kPositions);
  shape.arith = Arith::kTile64Ex2;
  const Tile64Problem of_ex2(shape, ring_rows(), kPositions);
  CHECK(differences(problem.expected(), of_ex2.expected()) > 0);
}

TEST_CASE("a negative scale and none are served as any other", "[runtime][tile64]") {
  for (const Arith arith : {Arith::kTile64, Arith::kTile64Ex2}) {
    for (const float scale : {-0.37F, 0.0F, 0x1p-149F}) {
      CAPTURE(arith, scale);
      WindowRowsShape shape = shape_of(64, 2, 100);
      shape.arith = arith;
      Tile64Problem problem(shape, edge_rows(), kPositions);
      problem.scale = scale;
      const auto expected = problem.expected();
      const Tile64Kernel kernel(shape);
      CHECK(differences(problem.run(*kernel.launch(kSchedules[0])), expected) == 0);
      CHECK(differences(problem.run(*kernel.launch(kSchedules[1])), expected) == 0);
    }
  }
}

TEST_CASE("a captured launch replays to the same bits over the workspace that it left",
          "[runtime][tile64]") {
  const WindowRowsShape shape = shape_of(64, 3, 0);
  const Tile64Kernel kernel(shape);
  const Tile64Problem problem(shape, edge_rows(), kPositions);
  Replaying module(kernel.module());
  for (const Tile64Schedule& schedule : kSchedules) {
    CAPTURE(static_cast<int>(schedule.combine), schedule.tiles_a_split);
    const auto launch = runtime::make_tile64_launch(shape, kernel.plan(), module, 1, schedule);
    REQUIRE(launch);
    CHECK(differences(problem.run(**launch), problem.expected()) == 0);
  }
}

TEST_CASE(
    "a row's bits do not depend on batch, index, slot, length, layout or what it does not see",
    "[runtime][tile64]") {
  const WindowRowsShape linear = shape_of(64, 3, 100);
  const Tile64Kernel kernel(linear);
  const auto launch = kernel.launch();
  const Tile64Problem problem(linear, edge_rows(), kPositions);
  const auto together = problem.run(*launch);
  REQUIRE(differences(together, problem.expected()) == 0);
  for (std::size_t row = 0; row < problem.rows().size(); ++row) {
    CAPTURE(row);
    const auto alone = row_of(together, row, problem);
    CHECK(problem.run(*launch, {row}) == alone);
    // At every index of a batch of 17, among copies of another row.
    std::vector<std::size_t> crowd(17, (row + 1) % problem.rows().size());
    crowd[row * 3] = row;
    CHECK(row_of(problem.run(*launch, crowd), row * 3, problem) == alone);
    CHECK(problem.run(*launch, {row}, 4) == alone);              // another slot
    CHECK(problem.run(*launch, {row}, 0, 16) == alone);          // a longer cache
    CHECK(problem.run(*launch, {row}, 0, 1, 0x7F80) == alone);   // infinities behind it
    CHECK(problem.run(*launch, {row}, 0, 1, 0, 0x5A) == alone);  // other poison
  }
  // The layouts hold the same keys; 300 is no multiple of 64, so tiles wrap inside a ring.
  const Tile64Problem streams(linear, ring_rows(), kPositions);
  const auto expected = streams.expected();
  for (const KvLayout layout : {KvLayout{}, kRing300, KvLayout{KvLayoutKind::kRing, 100}, kPages24,
                                KvLayout{KvLayoutKind::kPaged, 1}}) {
    CAPTURE(static_cast<int>(layout.kind), layout.length);
    const WindowRowsShape shape = shape_of(64, 3, 100, layout);
    const Tile64Problem laid_out(shape, ring_rows(), kPositions);
    CHECK(differences(laid_out.run(*Tile64Kernel(shape).launch()), expected) == 0);
  }
}

TEST_CASE("a non-finite head is float64's and its neighbours keep their bits",
          "[runtime][tile64]") {
  const WindowRowsShape shape = shape_of(64, 3, 100);
  const Tile64Kernel kernel(shape);
  const std::vector<DecodeRow> rows = {{0, 150}, {1, 150}, {2, 70}};
  const Tile64Problem clean(shape, rows, kPositions);
  const auto expected = clean.expected();
  const auto infinity = std::uint16_t{0x7F80};
  for (const Tile64Schedule& schedule : {kSchedules[0], kSchedules[1], kSchedules[3]}) {
    const auto launch = kernel.launch(schedule);
    CAPTURE(static_cast<int>(schedule.combine));
    SECTION("a NaN query takes its own head only " +
            std::to_string(static_cast<int>(schedule.combine))) {
      Tile64Problem problem = clean;
      problem.q(1, 4)[7] = 0x7FC0;
      const auto out = problem.run(*launch);
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
      Tile64Problem problem = clean;
      problem.value(0, 120, 1)[9] = infinity;              // seen by row 0
      problem.value(1, 50, 0)[3] = infinity;               // just before row 1's window
      problem.value(2, 71, 0)[3] = std::uint16_t{0x7FC0};  // just after row 2
      const auto out = problem.run(*launch);
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
      Tile64Problem problem = clean;
      problem.value(0, 120, 0)[9] = infinity;
      problem.value(0, 60, 0)[9] = std::uint16_t{0xFF80};
      const auto out = problem.run(*launch);
      for (std::size_t head = 0; head < 3; ++head) CHECK(out[head * 64 + 9] == 0x7FFF);
      CHECK(row_of(out, 1, problem) == row_of(expected, 1, problem));
    }
  }
}

TEST_CASE("an infinite value under a weight that only float64 holds is infinite",
          "[runtime][tile64]") {
  // One key scores about 200 above the rest: their fp32 weights are 0, float64's are e^-200.
  const WindowRowsShape shape = shape_of(64, 1, 0);
  const Tile64Kernel kernel(shape);
  Tile64Problem problem(shape, {{0, 90}}, kPositions);
  problem.scale = 1.0F;
  for (int head = 0; head < 2; ++head) {
    for (auto& q : problem.q(0, head)) q = problem.rounded(1.0F);
    for (int p = 0; p <= 90; ++p) {
      for (auto& k : problem.key(0, p, head)) k = problem.rounded(p == 40 ? 3.125F : 0.0F);
    }
  }
  problem.value(0, 80, 0)[5] = 0x7F80;
  for (const Tile64Schedule& schedule : {kSchedules[0], kSchedules[1]}) {
    const auto out = problem.run(*kernel.launch(schedule));
    CHECK(out[5] == 0x7F80);
    CHECK(out[6] == problem.value(0, 40, 0)[6]);
    CHECK(out[64 + 5] == problem.value(0, 40, 1)[5]);
  }
}

TEST_CASE("a checked kernel names the argument that is out of range", "[runtime][tile64]") {
  WindowRowsShape shape = shape_of(64, 1, 0, kPages24);
  shape.checked = Switch::kOn;
  const Tile64Kernel kernel(shape);
  const auto launch = kernel.launch();
  std::vector<std::uint16_t> data(64 * 64, 0);
  std::vector<std::int32_t> table(4, 0);
  WindowRowsDecodeArgs args;
  args.attention.q = args.cache.k = args.cache.v = data.data();
  args.attention.out = data.data();
  args.cache.page_table = table.data();
  args.attention.q_head_stride = args.attention.q_row_stride = args.attention.out_head_stride =
      args.attention.out_row_stride = 64;
  args.cache.k_head_stride = args.cache.k_position_stride = args.cache.v_head_stride =
      args.cache.v_position_stride = 64;
  args.cache.k_slot_stride = args.cache.v_slot_stride = 64;
  args.cache.page_table_stride = 2;
  args.attention.rows = 1;
  args.cache.kv_heads = 1;
  args.cache.slots = 2;
  args.cache.length = 48;
  struct Fault {
    std::int32_t position, slot, page;
    std::string words;
  };
  const Fault fault = GENERATE(values<Fault>({{48, 0, 0, "position"},
                                              {-1, 0, 0, "position"},
                                              {3, 2, 0, "slot"},
                                              {3, -1, 0, "slot"},
                                              {40, 1, -7, "page"}}));
  args.positions = &fault.position;
  args.slots = &fault.slot;
  table[3] = fault.page;
  const auto launched = launch->launch(args, nullptr);
  REQUIRE_FALSE(launched);
  CHECK(launched.error().message.find(fault.words) != std::string::npos);
}

TEST_CASE("each planted fault of tile64's decode changes bits", "[runtime][tile64]") {
  WindowRowsShape shape = shape_of(64, 2, 100, kPages24);
  shape.p32 = Switch::kOn;
  shape.sinks = Switch::kOn;
  const Tile64Problem problem(shape, {{0, 150}, {1, 350}, {2, 499}}, kPositions);
  const auto expected = problem.expected();
  const std::string control =
      GENERATE("window_early", "rescale_dropped", "low_half_dropped", "sink_left_out",
               "page_off_by_one", "ratio_off_by_one", "output_toward_zero");
  CAPTURE(control);
  const Tile64Kernel kernel(shape, {control, Switch::kOff});
  CHECK(differences(problem.run(*kernel.launch(Tile64Schedule{})), expected) > 0);
  CHECK(differences(problem.run(*kernel.launch(kSchedules[1])), expected) > 0);
}

TEST_CASE("tiles combined in the wrong order change bits", "[runtime][tile64]") {
  // Another order moves fp32 sums by units in the last place: one f16 output in some thousands then
  // rounds the other way, so there must be many.
  WindowRowsShape shape = shape_of(256, 8, 0);
  shape.dtype = Dtype::kF16;
  const Tile64Problem problem(shape, {{0, 430}, {0, 450}, {0, 470}, {0, 499}}, kPositions);
  const auto right = problem.run(*Tile64Kernel(shape).launch(kSchedules[1]));
  const Tile64Kernel kernel(shape, {"combine_reversed", Switch::kOff});
  CHECK(differences(problem.run(*kernel.launch(kSchedules[1])), right) > 0);
}

TEST_CASE("a whole-block re-run is seen by the neighbours", "[runtime][tile64]") {
  const WindowRowsShape shape = shape_of(64, 2, 0);
  Tile64Problem problem(shape, {{0, 450}}, kPositions);
  const auto clean = problem.expected();
  problem.q(0, 0)[3] = 0x7FC0;
  const auto others = [&](const std::vector<std::uint16_t>& out) {
    return differences({out.begin() + 64, out.begin() + 128},
                       {clean.begin() + 64, clean.begin() + 128});
  };
  CHECK(others(problem.run(*Tile64Kernel(shape).launch())) == 0);
  const Tile64Kernel faulty(shape, {"whole_block_rerun", Switch::kOff});
  CHECK(others(problem.run(*faulty.launch())) > 0);
}

}  // namespace broach
