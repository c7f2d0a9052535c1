#include "tools/contract/window_rows/run.hpp"

#include <utility>

#include "tools/contract/window_rows/launch.hpp"

namespace broach::contract::window_rows {
namespace {

struct MadeOperator {
  WindowRowsShape shape;  ///< As it is served.
  Decoder decoder;
};

Result<MadeOperator> operator_of(Runtime& runtime, const WindowRowsShape& shape) {
  if (shape.form == Form::kPrefill) {
    auto op = window_rows_prefill(runtime, shape);
    if (!op) return op.error();
    return MadeOperator{op->shape(), decoder_of(*op)};
  }
  auto op = window_rows_decode(runtime, shape);
  if (!op) return op.error();
  return MadeOperator{op->shape(), decoder_of(*op)};
}

}  // namespace

Result<void> load_operator(Runtime& runtime, const WindowRowsShape& shape) {
  auto made = operator_of(runtime, shape);
  if (!made) return made.error();
  return {};
}

Result<RunReport> run_case(Runtime& runtime, runtime::Device& device, const CaseSpec& tried,
                           const RunOptions& options) {
  auto problem = make_problem(tried.recipe);
  if (!problem) return problem.error();
  return run_case(runtime, device, std::move(*problem), options);
}

Result<RunReport> run_case(Runtime& runtime, runtime::Device& device, Problem problem,
                           const RunOptions& options) {
  auto made = operator_of(runtime, problem.shape);
  if (!made) return made.error();
  problem.shape = made->shape;  // A default arithmetic has become the target's.
  const Decoder& decoder = made->decoder;
  auto uploaded = DeviceProblem::upload(device, problem);
  if (!uploaded) return uploaded.error();
  auto out = uploaded->run(decoder, Poison::kNan);
  if (!out) return out.error();

  RunReport report;
  report.device = runtime.device_name();
  report.target = runtime.target_name();
  auto range = check_outputs(problem, *out, options.threads);
  if (!range) return range.error();
  report.range = *range;
  report.out = std::move(*out);
  if (options.timed_launches > 0) {
    auto args = uploaded->args(decoder);
    if (!args) return args.error();
    if (auto timed = time_launches(report, device, options.timed_launches,
                                   [&] { return uploaded->launch(decoder, *args); });
        !timed) {
      return timed.error();
    }
  }
  return report;
}

}  // namespace broach::contract::window_rows
