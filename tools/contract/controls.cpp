#include "tools/contract/controls.hpp"

#include <utility>

#include "specializer/shape.hpp"

namespace broach::contract {
namespace {

constexpr Control kControls[] = {
    {"window_early", "the window starts one key early", Arith::kChunk256, Needs::kWindow,
     Gate::kShapes, "the key before the window is a cell that no row sees, and holds NaN"},
    {"merge_unscaled", "chunks merge without exp(m_c - M)", Arith::kChunk256, Needs::kWindow,
     Gate::kShapes, "a chunk's weights are off by the factor left out, far beyond the range"},
    {"merge_toward_zero", "the merge rounds its output toward zero", Arith::kChunk256,
     Needs::kWindow, Gate::kShapes,
     "where the range holds one value, half of the outputs are the value below it"},
    {"whole_block_rerun", "a non-finite output re-runs its neighbours in float64 too",
     Arith::kChunk256, Needs::kWindow, Gate::kNonFinite,
     "beside sums that cancel, nearly every output of a neighbour has other bits in float64"},
    {"sink_left_out", "the sink does not join the denominator", Arith::kChunk256, Needs::kSinks,
     Gate::kShapes, "the denominator is short by the sink's weight, far beyond the range"},
    {"page_off_by_one", "the next page table entry is read", Arith::kChunk256, Needs::kPages,
     Gate::kShapes, "the page read holds other keys, or NaN"},
    {"ratio_off_by_one", "query heads find their KV head as if there were one more to each",
     Arith::kChunk256, Needs::kWindow, Gate::kShapes,
     "those heads' outputs are another KV head's, far beyond the range"},
    {"window_early", "the window starts one key early", Arith::kTile64, Needs::kWindow,
     Gate::kShapes, "the key before the window is a cell that no row sees, and holds NaN"},
    {"fold_unscaled", "a tile joins without exp(m_t - M)", Arith::kTile64, Needs::kWindow,
     Gate::kShapes, "a tile's weights are off by the factor left out, far beyond the range"},
    {"fold_reversed", "tiles are folded from the last to the first", Arith::kTile64, Needs::kWindow,
     Gate::kSums,
     "values that cancel show in which order a row's tiles were summed, however blocks share them"},
    {"whole_block_rerun", "one non-finite output re-runs every head of its block in float64",
     Arith::kTile64, Needs::kWindow, Gate::kNonFinite,
     "beside sums that cancel, nearly every output of a neighbour has other bits in float64; a "
     "fold "
     "by a second kernel has one head a block and no neighbour, the two other folds show it"},
    {"sink_left_out", "the sink does not join the denominator", Arith::kTile64, Needs::kSinks,
     Gate::kShapes, "the denominator is short by the sink's weight, far beyond the range"},
    {"page_off_by_one", "the next page table entry is read", Arith::kTile64, Needs::kPages,
     Gate::kShapes, "the page read holds other keys, or NaN"},
};

}  // namespace

std::span<const Control> controls() { return kControls; }

DecodeCase control_case(const Control& control) {
  DecodeCase made;
  made.name =
      "control " + std::string(control.name) + (control.arith == Arith::kTile64 ? " tile64" : "");
  WindowRowsShape& shape = made.recipe.shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  shape.window = 1100;
  shape.kv_layout = {KvLayoutKind::kRing, 1200};
  shape.arith = control.arith;
  if (control.needs == Needs::kSinks) shape.sinks = Switch::kOn;
  if (control.needs == Needs::kPages) shape.kv_layout = {KvLayoutKind::kPaged, 64};
  made.recipe.kv_heads = 3;
  // Neighbours in the batch are of other streams, so that they do not see each other's keys.
  made.recipe.rows = {{0, 5'000}, {1, 1'300}, {0, 4'950}, {2, 700}, {2, 651}};
  if (control.gate == Gate::kNonFinite) {
    // Heads that share a block, in each way that a launch may be spread: tile64 folds 512 values at
    // a time, so that at head_dim 512 a folding block would have no neighbour.
    shape.gqa_ratio = 8;
  }
  made.recipe.scale = 2.0F;
  made.recipe.seed = 77;
  return made;
}

ControlReport try_control(const Control& control, const Bench& bench, std::uint32_t threads) {
  ControlReport report{&control, false, {}};
  const DecodeCase tried = control_case(control);
  auto kernel = Kernel::load(bench, tried.recipe.shape, {std::string(control.name), Switch::kOff});
  if (!kernel) {
    report.words = "could not be built: " + kernel.error().message;
    return report;
  }
  const GateReport gate = run_gate(control.gate, {&*kernel, &tried, nullptr, {}, threads});
  report.red = !gate.passed;
  report.words = gate.passed ? "stayed green" : gate.failures.front();
  return report;
}

}  // namespace broach::contract
