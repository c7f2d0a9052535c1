#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "specializer/window_rows/shape.hpp"
#include "tools/contract/window_rows/shape_trial.hpp"
#include "tools/contract/window_rows/variants.hpp"

namespace broach::contract::window_rows {
namespace {

constexpr std::int32_t kResidues = 64;  // A block has 64 rows, a tile 64 keys.
constexpr std::int32_t kFewResidues[] = {1, 31, 48};
constexpr std::int32_t kMostDecodeRows = 64;

// Whether no row before `at` sees a key of the rows from `at` on, in the prefill's first sequence.
bool may_be_cut(const Problem& p, std::int32_t at) {
  const std::int32_t behind = p.positions[0] + at;
  for (std::int32_t row = 0; row < at; ++row) {
    if (p.last_key(row) >= behind) return false;
  }
  return true;
}

// The first place of a residue modulo 64 where the first sequence may be cut, or 0.
std::int32_t place_of_cut(const Problem& p, std::int32_t residue) {
  for (std::int32_t at = residue == 0 ? kResidues : residue; at < p.offsets[1]; at += kResidues) {
    if (may_be_cut(p, at)) return at;
  }
  return 0;
}

void cut_at_residue(ShapeTrial& trial, std::int32_t residue, std::int32_t& left_out) {
  const Problem& whole = trial.problem();
  const std::int32_t at = place_of_cut(whole, residue);
  if (at == 0) {
    ++left_out;
    return;
  }
  const Problem cut = whole.cut(at);
  trial.compare(trial.input().kernel->run(cut), cut, first_rows(cut.rows),
                fmt::format("cut before row {}", at));
}

// Promise 3: cut in two, and row by row through the prefill form.
void check_cuts(ShapeTrial& trial) {
  std::int32_t left_out = 0;
  if (trial.input().tried->cuts == Cuts::kFew) {
    for (const std::int32_t residue : kFewResidues) cut_at_residue(trial, residue, left_out);
    return;
  }
  for (std::int32_t residue = 0; residue < kResidues; ++residue) {
    cut_at_residue(trial, residue, left_out);
  }
  if (left_out > 0) {
    trial.report().fail(fmt::format("{} residues modulo 64 leave no place for a cut", left_out));
  }
  trial.batch(own_rows(trial.problem()), "row by row");
}

// Promise 8: the decode form's bits.
void check_decode_form(ShapeTrial& trial) {
  const Kernel& kernel = *trial.input().kernel;
  const auto shape = other_form(kernel.shape());
  if (!shape) return;
  if (auto served = specializer::serve(*shape, kernel.bench().device->target()); !served) {
    trial.report().notes.push_back("the decode form is not served: " + served.error().message);
    return;
  }
  auto decode = Kernel::load(kernel.bench(), *shape);
  if (!decode) return trial.report().fail("the decode form: " + decode.error().message);
  std::vector<std::int32_t> rows = own_rows(trial.problem());
  const auto count = static_cast<std::int32_t>(rows.size());
  if (count > kMostDecodeRows) {
    std::vector<std::int32_t> fewer;
    for (std::int32_t i = 0; i < kMostDecodeRows; ++i) {
      fewer.push_back(rows[static_cast<std::size_t>(i * (count - 1) / (kMostDecodeRows - 1))]);
    }
    rows = std::move(fewer);
  }
  Problem taken = trial.problem().take(rows);
  taken.shape = *shape;
  taken.offsets.clear();
  trial.compare(decode->run(taken), taken, rows, "the decode form");
}

}  // namespace

void check_prefill_promises(ShapeTrial& trial) {
  check_cuts(trial);
  if (has_other_form(trial.input().tried->twins)) check_decode_form(trial);
}

}  // namespace broach::contract::window_rows
