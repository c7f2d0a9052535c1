#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "specializer/target.hpp"
#include "tools/contract/harness/number.hpp"
#include "tools/contract/window_rows/gates.hpp"
#include "tools/contract/window_rows/launch_ways.hpp"
#include "tools/contract/window_rows/shape_trial.hpp"
#include "tools/contract/window_rows/unit_weights.hpp"

namespace broach::contract::window_rows {
namespace {

// A narrower accumulator is told from fp32 relative to an output of at least this size.
constexpr double kSmallOutput = 16;

// Counts outputs that are not as `want` says, and reports the first.
template <class Want>
void compare(const Problem& p, const std::vector<std::uint16_t>& out, std::string_view part,
             GateReport& report, Want want) {
  std::uint64_t wrong = 0;
  std::string first;
  for (std::int32_t row = 0; row < p.rows; ++row) {
    for (std::int32_t head = 0; head < p.heads(); ++head) {
      for (std::int32_t d = 0; d < p.head_dim(); ++d) {
        const std::uint16_t got = out[static_cast<std::size_t>(p.out_at(row, head) + d)];
        const std::uint16_t wanted = want(row, head, d);
        ++report.comparisons;
        if (got == wanted) continue;
        if (wrong++ == 0) {
          first = fmt::format("row {} head {} dim {} is {}, not {}", row, head, d,
                              value_of(got, p.shape.dtype), value_of(wanted, p.shape.dtype));
        }
      }
    }
  }
  if (wrong > 0) report.fail(fmt::format("{}: {} outputs differ; {}", part, wrong, first));
}

// Says what an accumulator of a narrower type would have given, so that a reader knows what the
// gate separates.
void note_narrow(const Problem& p, specializer::MmaStep step, Narrow narrow, std::string_view name,
                 GateReport& report) {
  std::uint64_t seen = 0;
  std::uint64_t outputs = 0;
  double furthest = 0;
  for (std::int32_t row = 0; row < p.rows; ++row) {
    for (std::int32_t d = 0; d < kMirroredDims; ++d) {
      const double exact = value_of(mirrored_output(p, row, d), p.shape.dtype);
      const double got = value_of(unit_weight_output(p, step, row, 0, d, narrow), p.shape.dtype);
      ++outputs;
      if (got == exact) continue;
      ++seen;
      const double off = std::isfinite(got)
                             ? std::fabs(got - exact) / (std::fabs(exact) + kSmallOutput)
                             : std::numeric_limits<double>::infinity();
      furthest = std::max(furthest, off);
    }
  }
  if (seen == 0) {
    report.notes.push_back(
        fmt::format("an accumulator of {} cannot be told from fp32 here: every row's sums are "
                    "short enough to be exact in it",
                    name));
    return;
  }
  report.notes.push_back(
      fmt::format("an accumulator of {} would miss {} of {} outputs, {}", name, seen, outputs,
                  std::isfinite(furthest) ? fmt::format("by a factor of {:.2g} at most", furthest)
                                          : std::string("and overflow")));
}

void check_cancelling(const GateInput& input, Problem problem, GateReport& report) {
  set_values_cancelling(problem);
  const specializer::MmaStep step = input.kernel->bench().device->target().mma_step;
  const auto ratio = static_cast<std::int32_t>(problem.shape.gqa_ratio);
  const std::int32_t dims = problem.head_dim();
  // Of the one row, by KV head: the queries do not matter.
  std::vector<std::uint16_t> expected;
  for (std::int32_t i = 0; i < problem.kv_heads * dims; ++i) {
    expected.push_back(unit_weight_output(problem, step, 0, i / dims * ratio, i % dims));
  }
  const auto check = [&](const Result<std::vector<std::uint16_t>>& out, std::string_view folded) {
    const std::string part = fmt::format("weights of 1 on cancelling values up to position {}{}",
                                         problem.last_key(0), folded);
    if (!out) return report.fail(part + ": " + out.error().message);
    compare(problem, *out, part, report, [&](std::int32_t, std::int32_t head, std::int32_t d) {
      return expected[static_cast<std::size_t>(head / ratio * dims + d)];
    });
  };
  auto ways = launch_ways(*input.kernel);
  if (!ways) return report.fail(ways.error().message);
  auto uploaded = DeviceProblem::upload(*input.kernel->bench().device, problem);
  if (!uploaded) return report.fail(uploaded.error().message);
  // Each way has to show its order of sums here.
  for (const LaunchWay& way : *ways) {
    check(uploaded->run(way.decoder, Poison::kNan),
          way.name.empty() ? "" : fmt::format(", {}", way.name));
  }
  const std::int32_t piece = piece_keys(problem.shape.arith);
  if (problem.first_key(0) / piece == problem.last_key(0) / piece) {
    report.notes.push_back(
        fmt::format("the row at position {} lies in one piece of {} keys: it shows no order of "
                    "pieces",
                    problem.last_key(0), piece));
  }
}

}  // namespace

GateReport gate_sums(const GateInput& input) {
  GateReport report;
  report.gate = Gate::kSums;
  auto made = make_problem(input.tried->recipe);
  if (!made) {
    report.fail(made.error().message);
    return report;
  }
  Problem& problem = *made;
  set_keys_to_zero(problem);
  const std::vector<std::int32_t> own = own_rows(problem);
  if (!own.empty()) {
    for (const std::int32_t row : {own.front(), own[own.size() / 2], own.back()}) {
      check_cancelling(input, problem.take({row}), report);
    }
  }
  set_values_mirrored(problem);
  auto mirrored = input.kernel->run(problem);
  if (!mirrored) {
    report.fail(mirrored.error().message);
    return report;
  }
  // A row's outputs repeat over its heads and every 13 dims.
  std::vector<std::uint16_t> exact(static_cast<std::size_t>(problem.rows) * kMirroredDims);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    exact[i] = mirrored_output(problem, static_cast<std::int32_t>(i) / kMirroredDims,
                               static_cast<std::int32_t>(i) % kMirroredDims);
  }
  compare(problem, *mirrored, "weights of 1 on mirrored integers", report,
          [&](std::int32_t row, std::int32_t, std::int32_t d) {
            return exact[static_cast<std::size_t>(row * kMirroredDims + d % kMirroredDims)];
          });
  const specializer::MmaStep step = input.kernel->bench().device->target().mma_step;
  note_narrow(problem, step, as_f16, "f16", report);
  note_narrow(problem, step, as_bf16, "bf16", report);
  return report;
}

}  // namespace broach::contract::window_rows
