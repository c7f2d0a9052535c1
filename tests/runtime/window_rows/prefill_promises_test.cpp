// What a prefill promises in both arithmetics, by bits and on the host: a row is the same however
// the prefill is cut, wherever its keys lie, and beside whatever other rows see.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/reference/mma_steps.hpp"
#include "tests/runtime/window_rows/made_problem.hpp"

namespace broach::test {
namespace {

constexpr std::uint16_t kNan = 0x7FC0;
constexpr std::uint16_t kInfinity = 0x7F80;

WindowRowsShape shape_of(Arith arith, std::uint32_t head_dim, std::uint32_t ratio,
                         std::uint32_t window, KvLayout layout = {}, Switch p32 = Switch::kOff) {
  return prefill_shape(arith, head_dim, ratio, window, layout, p32);
}

std::vector<Piece> row_by_row(std::int32_t rows) {
  std::vector<Piece> pieces;
  for (std::int32_t row = 0; row < rows; ++row) pieces.push_back({row, 1});
  return pieces;
}

/// The outputs of a prefill in pieces, each row's at its place in the whole.
Outputs pieced(const Kernel& kernel, const Problem& whole, const std::vector<Piece>& pieces) {
  const Problem problem = in_pieces(whole, pieces);
  const Outputs out = run(kernel, problem);
  Outputs at_rows(out.size());
  const std::vector<std::int32_t> rows = rows_of(pieces);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Outputs row = row_of(problem, out, static_cast<std::int32_t>(i));
    std::copy(row.begin(), row.end(), at_rows.begin() + whole.out_at(rows[i], 0));
  }
  return at_rows;
}

bool is_finite(std::uint16_t bits) { return (bits & 0x7F80U) != 0x7F80U; }

/// A launch that the host's own checks of arguments do not see first.
Result<Outputs> unchecked_run(const Problem& problem) {
  const Kernel kernel = kernel_of(problem.shape);
  auto launch =
      runtime::make_prefill_launch(kernel.shape(), kernel.plan(), *kernel.loaded().module);
  if (!launch) return launch.error();
  auto uploaded = contract::window_rows::DeviceProblem::upload(*kernel.bench().device, problem);
  if (!uploaded) return uploaded.error();
  return uploaded->run(contract::window_rows::decoder_of(
                           std::shared_ptr<const runtime::PrefillLaunch>(std::move(*launch))),
                       Poison::kNan);
}

/// A sequence of 70 rows from position 130 that see 60 keys each, with what is not finite in two
/// values, a query and, for mma32's and tile64's scores alike, a key.
struct Planted {
  static constexpr int kRows = 70;
  static constexpr int kFirst = 130;
  static constexpr int kLateValue = 165;   // seen by rows 35 on
  static constexpr int kEarlyValue = 100;  // by rows up to 29
  static constexpr int kLateKey = 198;     // by rows 68 on
  static constexpr int kQueryRow = 33;

  static Problem in(Problem problem, std::uint16_t plant) {
    value_at(problem, 0, kLateValue)[7] = plant;
    value_at(problem, 0, kEarlyValue)[problem.shape.head_dim - 3] = plant;
    key_at(problem, 0, kLateKey)[5] = plant;
    query_at(problem, kQueryRow, 0)[3] = plant;
    return problem;
  }

  static bool sees_value(int row) {
    const int position = kFirst + row;
    return position >= kLateValue || position - 59 <= kEarlyValue;
  }
  static bool sees_key(int row) { return kFirst + row >= kLateKey; }
};

}  // namespace

namespace {

/// Whether a prefill's outputs are those of its parts: cut in two before each of `cuts`, and row by
/// row in either order.
void check_cuts(Arith arith, Switch p32, const std::vector<std::int32_t>& cuts) {
  CAPTURE(arith, p32);
  const Problem problem =
      made(prefill_of(shape_of(arith, 64, 1, 90, {KvLayoutKind::kRing, 180}, p32), {{250, 70}}));
  const Kernel kernel = kernel_of(problem.shape);
  const Outputs whole = run(kernel, problem);
  CHECK(differences(whole, mma_steps_reference(problem)) == 0);
  for (const std::int32_t cut : cuts) {
    CAPTURE(cut);
    CHECK(differences(run(kernel, problem.cut(cut)), whole) == 0);
  }
  std::vector<Piece> rows = row_by_row(70);
  CHECK(differences(pieced(kernel, problem, rows), whole) == 0);
  std::reverse(rows.begin(), rows.end());
  CHECK(differences(pieced(kernel, problem, rows), whole) == 0);
}

}  // namespace

// Around the edges of bands, warps and blocks. The contract's quick sweep cuts at every residue.
TEST_CASE("a prefill's bits do not depend on how it is cut", "[runtime][prefill_promises]") {
  const Arith arith = GENERATE(Arith::kTile64Ex2, Arith::kMma32);
  const Switch p32 = GENERATE(Switch::kOff, Switch::kOn);
  check_cuts(arith, p32, {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 69});
}

TEST_CASE("a prefill's bits do not depend on how it is cut, at any residue modulo 64",
          "[runtime][prefill_promises][slow]") {
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32);
  const Switch p32 = GENERATE(Switch::kOff, Switch::kOn);
  std::vector<std::int32_t> cuts(69);
  std::iota(cuts.begin(), cuts.end(), 1);
  check_cuts(arith, p32, cuts);
}

TEST_CASE("a prefill's bits do not depend on slot, length, layout or what was there before",
          "[runtime][prefill_promises]") {
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32);
  const Recipe recipe =
      prefill_of(shape_of(arith, 64, 2, 40, {}, Switch::kOn), {{130, 50}, {7, 20}});
  const Problem problem = made(recipe);
  const Kernel kernel = kernel_of(problem.shape);
  const Outputs right = mma_steps_reference(problem);
  for (std::int32_t repeat = 0; repeat < 5; ++repeat) {
    const Poison poison = repeat % 2 == 0 ? Poison::kNan : Poison::kFinite;
    const Problem moved = in_slots(recipe, {repeat, repeat + 1}, 180 * (1 + repeat * 4));
    const auto unseen = static_cast<std::uint16_t>(poison);
    CHECK(differences(run(kernel, with_unseen(moved, unseen), poison), right) == 0);
  }
  CHECK(differences(pieced(kernel, problem, {{50, 20}, {0, 50}}), right) == 0);
  for (const KvLayout layout : {KvLayout{KvLayoutKind::kRing, 89},
                                {KvLayoutKind::kRing, 333},
                                {KvLayoutKind::kPaged, 24}}) {
    const Problem other = laid_out(recipe, layout);
    CHECK(differences(run(kernel_of(other.shape), other), right) == 0);
  }
}

namespace {

void check_planted(Arith arith, Switch p32, std::uint32_t head_dim) {
  CAPTURE(arith, p32, head_dim);
  const Problem clean = made(
      prefill_of(shape_of(arith, head_dim, 1, 60, {}, p32), {{Planted::kFirst, Planted::kRows}}));
  const Kernel kernel = kernel_of(clean.shape);
  const Outputs right = mma_steps_reference(clean);
  constexpr std::uint16_t kPlants[] = {kInfinity, 0xFF80, kNan};
  for (const std::uint16_t plant : kPlants) {
    const Problem problem = Planted::in(clean, plant);
    const Outputs out = run(kernel, problem);
    std::size_t changed = 0;
    for (int row = 0; row < Planted::kRows; ++row) {
      CAPTURE(plant, row);
      std::size_t non_finite = 0;
      const bool sees =
          Planted::sees_value(row) || Planted::sees_key(row) || row == Planted::kQueryRow;
      for (std::size_t d = 0; d < head_dim; ++d) {
        const std::size_t i = static_cast<std::size_t>(row) * head_dim + d;
        if (!is_finite(out[i])) ++non_finite;
        if (!sees) changed += out[i] != right[i] ? 1U : 0U;
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
    CHECK(differences(pieced(kernel, problem, row_by_row(Planted::kRows)), out) == 0);
    for (const std::int32_t cut : {1, 29, 30, 33, 34, 35, 64}) {
      CAPTURE(cut);
      CHECK(differences(run(kernel, problem.cut(cut)), out) == 0);
    }
  }
}

}  // namespace

TEST_CASE("rows that do not see a non-finite value, key or query keep their bits",
          "[runtime][prefill_promises]") {
  // One KV stage; several, two warps a band.
  check_planted(Arith::kTile64Ex2, Switch::kOff, 64);
  check_planted(Arith::kTile64Ex2, Switch::kOn, 512);
  check_planted(Arith::kTile64, Switch::kOn, 64);
  check_planted(Arith::kMma32, Switch::kOn, 64);
  check_planted(Arith::kMma32, Switch::kOff, 512);
}

TEST_CASE("rows that do not see what is not finite keep their bits in every arithmetic",
          "[runtime][prefill_promises][slow]") {
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32);
  const Switch p32 = GENERATE(Switch::kOff, Switch::kOn);
  check_planted(arith, p32, GENERATE(64U, 512U));
}

TEST_CASE("a weight that fp32 loses gives an infinite value its float64 class in a prefill",
          "[runtime][prefill_promises]") {
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32);
  Problem problem = made(prefill_of(shape_of(arith, 64, 2, 40, {}, Switch::kOn), {{130, 20}}));
  problem.scale = 0.37F;
  // Row 10 and head 1 alone score this key so low that fp32's weight is 0; infinity times that is
  // NaN, and float64's weight is not 0.
  constexpr std::int32_t kRow = 10;
  for (auto& k : key_at(problem, kRow, 135)) k = 0xC040;  // -3
  for (auto& q : query_at(problem, kRow, 1)) q = 0x4040;  // 3: a score of -213
  value_at(problem, kRow, 135)[2] = kInfinity;
  const Outputs out = run(kernel_of(problem.shape), problem);
  const auto head = static_cast<std::size_t>(problem.out_at(kRow, 1));
  CHECK(out[head + 2] == kInfinity);
  CHECK(is_finite(out[head + 3]));
}

TEST_CASE("a whole-block re-run gives a prefill's neighbours float64's bits",
          "[runtime][prefill_promises]") {
  WindowRowsShape shape =
      shape_of(GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32), 512, 1, 60);
  shape.dtype = Dtype::kF16;
  Problem problem = made(prefill_of(shape, {{130, 64}}));
  query_at(problem, 33, 0)[3] = 0x7E00;
  const Outputs sound = run(kernel_of(shape), problem);
  const Kernel faulty = kernel_of(shape, {"whole_block_rerun", Switch::kOff});
  CHECK(differences(run(faulty, problem), sound) > 0);
}

TEST_CASE("a checked prefill names the argument of a row that is out of range",
          "[runtime][prefill_promises]") {
  struct Fault {
    std::string words;
    void (*spoil)(Problem& problem);
  };
  struct Faults {
    KvLayout layout;
    std::vector<Fault> each;
  };
  const Arith arith = GENERATE(Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32);
  const std::string kHi = "hi is not between the row's position and the chunk's end: ";
  const Faults all[] = {
      {{},
       {{kHi + "132", [](Problem& p) { p.passes_hi = true, p.last_keys[3] = 132; }},
        {kHi + "150", [](Problem& p) { p.passes_hi = true, p.last_keys[3] = 150; }},
        {"slot is outside 0 to slots - 1: 1", [](Problem& p) { p.slots[0] = 1; }},
        {"slot is outside 0 to slots - 1: -1", [](Problem& p) { p.slots[0] = -1; }},
        {"position is negative: -3", [](Problem& p) { p.positions[0] = -3; }},
        {"position is past its slot's length: 140", [](Problem& p) { p.length = 140; }}}},
      {{KvLayoutKind::kRing, 59},
       {{"the ring does not hold the window and the chunk's rows: 150",
         [](Problem& p) { p.length = 58, p.shape.kv_layout.length = 58; }}}},
      {{KvLayoutKind::kPaged, 24},
       {{"page table entry is negative: -7", [](Problem& p) { p.page_table[5] = -7; }}}},
  };
  for (const Faults& faults : all) {
    WindowRowsShape shape = shape_of(arith, 64, 1, 40, faults.layout);
    shape.checked = Switch::kOn;
    const Problem good = made(prefill_of(shape, {{130, 20}}));
    for (const Fault& fault : faults.each) {
      CAPTURE(fault.words);
      Problem problem = good;
      fault.spoil(problem);
      const auto refused = unchecked_run(problem);
      REQUIRE_FALSE(refused);
      INFO(refused.error().message);
      CHECK(refused.error().message.find(fault.words) != std::string::npos);
    }
  }
}

}  // namespace broach::test
