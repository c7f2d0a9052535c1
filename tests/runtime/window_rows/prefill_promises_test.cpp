// What a prefill promises in both arithmetics, by bits and on the host: a row is the same however
// the prefill is cut, wherever its keys lie, and beside whatever other rows see.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/kernel_src/mma32_reference.hpp"
#include "tests/kernel_src/tile64_reference.hpp"
#include "tests/runtime/window_rows/prefill_problem.hpp"

namespace broach {
namespace {

using test::Chunk;
using test::differences;
using test::prefill_shape;
using test::PrefillKernel;
using test::PrefillProblem;

constexpr std::uint16_t kNan = 0x7FC0;
constexpr std::uint16_t kInfinity = 0x7F80;

/// The plain arithmetic's outputs, each row seeing keys up to its own.
std::vector<std::uint16_t> expected(const PrefillProblem& problem) {
  return problem.shape().arith == Arith::kMma32 ? problem.expected<test::Mma32Reference>(false)
                                                : problem.expected<test::Tile64Reference>(false);
}

std::vector<Chunk> row_by_row(int rows) {
  std::vector<Chunk> chunks;
  for (int row = 0; row < rows; ++row) chunks.push_back({0, row, 1});
  return chunks;
}

bool is_finite(std::uint16_t bits) { return (bits & 0x7F80U) != 0x7F80U; }

/// A sequence of 70 rows from position 130 that see 60 keys each, with what is not finite in two
/// values, a query and, for mma32's and tile64's scores alike, a key.
struct Planted {
  static constexpr int kRows = 70;
  static constexpr int kFirst = 130;
  static constexpr int kLateValue = 165;   // seen by rows 35 on
  static constexpr int kEarlyValue = 100;  // by rows up to 29
  static constexpr int kLateKey = 198;     // by rows 68 on
  static constexpr int kQueryRow = 33;

  static PrefillProblem in(PrefillProblem problem, std::uint16_t plant) {
    problem.value(0, kLateValue, 7) = plant;
    problem.value(0, kEarlyValue, problem.dims() - 3) = plant;
    problem.key(0, kLateKey, 5) = plant;
    problem.query(kQueryRow, 3) = plant;
    return problem;
  }

  static bool sees_value(int row) {
    const int position = kFirst + row;
    return position >= kLateValue || position - 59 <= kEarlyValue;
  }
  static bool sees_key(int row) { return kFirst + row >= kLateKey; }
};

}  // namespace

TEST_CASE("a prefill's bits do not depend on how it is cut", "[runtime][prefill_promises]") {
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32);
  const Switch p32 = GENERATE(Switch::kOff, Switch::kOn);
  const PrefillProblem problem(prefill_shape(arith, 64, 1, 90, {KvLayoutKind::kRing, 180}, p32),
                               {{250, 70}});
  const PrefillKernel kernel(problem.shape());
  const auto whole = problem.run(kernel, problem.whole(), false);
  CHECK(differences(whole, expected(problem)) == 0);
  for (int cut = 1; cut < 70; ++cut) {  // every residue modulo 64
    CAPTURE(cut);
    CHECK(differences(problem.run(kernel, {{0, 0, cut}, {0, cut, 70 - cut}}, false), whole) == 0);
  }
  std::vector<Chunk> rows = row_by_row(70);
  CHECK(differences(problem.run(kernel, rows, false), whole) == 0);
  std::reverse(rows.begin(), rows.end());
  CHECK(differences(problem.run(kernel, rows, false), whole) == 0);
}

TEST_CASE("a prefill's bits do not depend on slot, length, layout or what was there before",
          "[runtime][prefill_promises]") {
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32);
  const PrefillProblem problem(prefill_shape(arith, 64, 2, 40, {}, Switch::kOn),
                               {{130, 50}, {7, 20}});
  const PrefillKernel kernel(problem.shape());
  const auto right = expected(problem);
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto poison = static_cast<std::uint16_t>(repeat % 2 == 0 ? 0xFFFF : 0x5A5A);
    CHECK(differences(
              problem.run(kernel, problem.whole(), false, {repeat, 1 + repeat * 4, poison, poison}),
              right) == 0);
  }
  CHECK(differences(problem.run(kernel, {{1, 0, 20}, {0, 0, 50}}, false), right) == 0);
  for (const KvLayout layout : {KvLayout{KvLayoutKind::kRing, 89},
                                {KvLayoutKind::kRing, 333},
                                {KvLayoutKind::kPaged, 24}}) {
    const PrefillProblem other = problem.laid_out(layout);
    CHECK(differences(other.run(PrefillKernel(other.shape()), other.whole(), false), right) == 0);
  }
}

TEST_CASE("rows that do not see a non-finite value, key or query keep their bits",
          "[runtime][prefill_promises]") {
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32);
  const Switch p32 = GENERATE(Switch::kOff, Switch::kOn);
  const std::uint32_t head_dim = GENERATE(64U, 512U);  // One KV stage; several, two warps a band.
  const PrefillProblem clean(prefill_shape(arith, head_dim, 1, 60, {}, p32),
                             {{Planted::kFirst, Planted::kRows}});
  const PrefillKernel kernel(clean.shape());
  const auto right = expected(clean);
  constexpr std::uint16_t kPlants[] = {kInfinity, 0xFF80, kNan};
  for (const std::uint16_t plant : kPlants) {
    const PrefillProblem problem = Planted::in(clean, plant);
    const auto out = problem.run(kernel, problem.whole(), false);
    std::size_t changed = 0;
    for (int row = 0; row < Planted::kRows; ++row) {
      CAPTURE(plant, row);
      std::size_t non_finite = 0;
      const bool sees =
          Planted::sees_value(row) || Planted::sees_key(row) || row == Planted::kQueryRow;
      for (std::size_t d = 0; d < head_dim; ++d) {
        const std::size_t i = static_cast<std::size_t>(row) * head_dim + d;
        if (!is_finite(out[i])) ++non_finite;
        if (!sees) changed += out[i] != right[i];
      }
      if (row == Planted::kQueryRow) {
        CHECK(non_finite == head_dim);
      } else if (Planted::sees_key(row)) {
        CHECK(non_finite >= 1);
      } else if (sees) {
        CHECK(non_finite == 1);  // Its other values are float64's.
      }
    }
    CHECK(changed == 0);
    if (head_dim > 64) continue;  // Rows alone are minutes of a host's work there.
    // Alone and in pieces, every row has the bits it has beside the others.
    CHECK(differences(problem.run(kernel, row_by_row(Planted::kRows), false), out) == 0);
    for (const int cut : {1, 29, 30, 33, 34, 35, 64}) {
      CAPTURE(cut);
      const std::vector<Chunk> pieces{{0, 0, cut}, {0, cut, Planted::kRows - cut}};
      CHECK(differences(problem.run(kernel, pieces, false), out) == 0);
    }
  }
}

TEST_CASE("a weight that fp32 loses gives an infinite value its float64 class in a prefill",
          "[runtime][prefill_promises]") {
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32);
  PrefillProblem problem(prefill_shape(arith, 64, 2, 40, {}, Switch::kOn), {{130, 20}});
  // Row 10 and head 1 alone score this key so low that fp32's weight is 0; infinity times that is
  // NaN, and float64's weight is not 0.
  const int row = 10;
  for (std::size_t d = 0; d < 64; ++d) {
    problem.key(0, 135, d) = 0xC040;      // -3
    problem.query(row, 64 + d) = 0x4040;  // 3: a score of -213
  }
  problem.value(0, 135, 2) = kInfinity;
  const auto out = problem.run(PrefillKernel(problem.shape()), problem.whole(), false);
  const std::size_t head = static_cast<std::size_t>(row) * 128 + 64;
  CHECK(out[head + 2] == kInfinity);
  CHECK(is_finite(out[head + 3]));
}

TEST_CASE("a whole-block re-run gives a prefill's neighbours float64's bits",
          "[runtime][prefill_promises]") {
  WindowRowsShape shape =
      prefill_shape(GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32), 512, 1, 60);
  shape.dtype = Dtype::kF16;
  PrefillProblem problem(shape, {{130, 64}});
  problem.query(33, 3) = 0x7E00;
  const auto sound = problem.run(PrefillKernel(shape), problem.whole(), false);
  const PrefillKernel faulty(shape, {"whole_block_rerun", Switch::kOff});
  CHECK(differences(problem.run(faulty, problem.whole(), false), sound) > 0);
}

TEST_CASE("a checked prefill names the argument of a row that is out of range",
          "[runtime][prefill_promises]") {
  using test::PrefillInputs;
  struct Fault {
    std::string words;
    void (*spoil)(PrefillInputs& inputs);
  };
  struct Faults {
    KvLayout layout;
    std::vector<Fault> each;
  };
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32);
  const std::string kHi = "hi is not between the row's position and the chunk's end: ";
  const Faults all[] = {
      {{},
       {{kHi + "132", [](PrefillInputs& in) { in.hi[3] = 132; }},
        {kHi + "150", [](PrefillInputs& in) { in.hi[3] = 150; }},
        {"slot is outside 0 to slots - 1: 1", [](PrefillInputs& in) { in.slots[0] = 1; }},
        {"slot is outside 0 to slots - 1: -1", [](PrefillInputs& in) { in.slots[0] = -1; }},
        {"position is negative: -3", [](PrefillInputs& in) { in.positions[0] = -3; }},
        {"position is past its slot's length: 140",
         [](PrefillInputs& in) { in.sizes.cache.length = 140; }}}},
      {{KvLayoutKind::kRing, 58},
       {{"the ring does not hold the window and the chunk's rows: 150", [](PrefillInputs&) {}}}},
      {{KvLayoutKind::kPaged, 24},
       {{"page table entry is negative: -7", [](PrefillInputs& in) { in.page_table[5] = -7; }}}},
  };
  for (const Faults& faults : all) {
    WindowRowsShape shape = prefill_shape(arith, 64, 1, 40, faults.layout);
    shape.checked = Switch::kOn;
    const PrefillProblem problem(shape, {{130, 20}});
    const PrefillKernel kernel(shape);
    for (const Fault& fault : faults.each) {
      CAPTURE(fault.words);
      const bool uses_hi = fault.words.starts_with(kHi);
      const auto refused = problem.try_run(kernel, problem.whole(), uses_hi, {}, fault.spoil);
      REQUIRE_FALSE(refused);
      INFO(refused.error().message);
      CHECK(refused.error().message.find(fault.words) != std::string::npos);
    }
  }
}

}  // namespace broach
