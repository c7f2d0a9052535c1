#include "tools/contract/window_rows/run.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "tools/contract/window_rows/launch.hpp"

namespace broach::contract::window_rows {
namespace {

constexpr std::int32_t kUntimedLaunches = 2;  // Caches and clocks settle.

struct Timing {
  double median_us = 0;
  double spread_us = 0;
};

// Each launch is waited for: on the host that is all there is, on a chip it is the latency that an
// engine sees. Benches time streams of launches.
Result<Timing> time_launches(runtime::Device& device, const DeviceProblem& problem,
                             const Decoder& decoder, const ProblemArgs& args,
                             std::int32_t launches) {
  std::vector<double> times;
  for (std::int32_t i = -kUntimedLaunches; i < launches; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (auto launched = problem.launch(decoder, args); !launched) return launched.error();
    if (auto done = device.synchronize(nullptr); !done) return done.error();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (i >= 0) times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  const std::size_t count = times.size();
  return Timing{times[count / 2], times[count * 3 / 4] - times[count / 4]};
}

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
    auto timing = time_launches(device, *uploaded, decoder, *args, options.timed_launches);
    if (!timing) return timing.error();
    report.median_us = timing->median_us;
    report.spread_us = timing->spread_us;
    report.timed_launches = options.timed_launches;
  }
  return report;
}

}  // namespace broach::contract::window_rows
