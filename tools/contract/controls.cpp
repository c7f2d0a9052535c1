#include "tools/contract/controls.hpp"

#include <utility>

#include "specializer/shape.hpp"

namespace broach::contract {
namespace {

constexpr Control kControls[] = {
    {"window_early", "the window starts one key early", Arith::kChunk256, Gate::kShapes,
     "the key before the window is a cell that no row sees, and holds NaN"},
    {"merge_unscaled", "chunks merge without exp(m_c - M)", Arith::kChunk256, Gate::kShapes,
     "a chunk's weights are off by the factor left out, far beyond the range"},
    {"merge_toward_zero", "the merge rounds toward zero", Arith::kChunk256, Gate::kSums,
     "with weights of 1 every rounding of the sums is known, and half of them differ"},
    {"whole_block_rerun", "one non-finite output re-runs every head of its block in float64",
     Arith::kChunk256, Gate::kNonFinite,
     "a neighbour that does not see the plant gets float64's bits instead of its own"},
    {"rerun_dropped", "non-finite outputs are not computed again in float64", Arith::kChunk256,
     Gate::kNonFinite, "+inf at a weight that fp32 cannot hold gives NaN instead of +inf"},
    {"ratio_off_by_one", "a block's last query head looks at the next KV head", Arith::kChunk256,
     Gate::kShapes, "that head's outputs are another head's, far beyond the range"},
    {"unmasked_block", "keys behind the row's end are not masked", Arith::kChunk256, Gate::kShapes,
     "the cells behind a row's end hold NaN or other rows' keys"},
    {"rounding_dropped", "a run's sum is not rounded before it joins its chunk", Arith::kChunk256,
     Gate::kSums, "with weights of 1 every rounding of the sums is known"},
};

}  // namespace

std::span<const Control> controls() { return kControls; }

DecodeCase control_case(const Control& control) {
  DecodeCase made;
  made.name = "planted controls";
  WindowRowsShape& shape = made.recipe.shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  shape.window = 1100;
  shape.kv_layout = {KvLayoutKind::kRing, 1200};
  shape.arith = control.arith;
  made.recipe.kv_heads = 2;
  made.recipe.rows = {{0, 5'000}, {0, 4'950}, {1, 1'300}, {2, 700}, {2, 651}};
  made.recipe.scale = 2.0F;
  made.recipe.seed = 77;
  return made;
}

ControlReport try_control(const Control& control, const Bench& bench, std::string_view digest,
                          std::uint32_t threads) {
  ControlReport report{&control, false, {}};
  const DecodeCase tried = control_case(control);
  auto kernel = Kernel::load(bench, tried.recipe.shape, {std::string(control.name), Switch::kOff});
  if (!kernel) {
    report.words = "could not be built: " + kernel.error().message;
    return report;
  }
  const GateReport gate = run_gate(control.gate, {&*kernel, &tried, nullptr, digest, threads});
  report.red = !gate.passed;
  report.words = gate.passed ? "stayed green" : gate.failures.front();
  return report;
}

}  // namespace broach::contract
