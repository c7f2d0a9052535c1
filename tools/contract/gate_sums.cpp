#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "kernel_src/tiles/matrix_step_model.cuh"
#include "runtime/window_rows/tile64_launch.hpp"
#include "specializer/target.hpp"
#include "tools/contract/gates.hpp"
#include "tools/contract/number.hpp"

namespace broach::contract {
namespace {

// Keys of zeros make every score 0 (or a cap's tanh of 0) and every weight exactly 1, whatever the
// queries are; a sink of 0 is one more weight of 1. What is left of the arithmetic is its sums.

constexpr std::int32_t kChunk = 256;
constexpr std::int32_t kRun = 32;
constexpr std::int32_t kTile = 64;
constexpr std::int32_t kStepKeys = 16;

// Mirrored values: +-kHigh by turns of 32 keys, plus a small multiple of 16 that depends on the
// dim. All are integers of 8 significant bits, so that bf16 and f16 hold them exactly, and no
// partial sum of 32-key turns reaches 2^24, so that fp32 holds every partial sum in any order. One
// turn's sum, 32 * 2944 = 94,208, is past f16's 65,504; in bf16 its unit is 512, so that the small
// part is lost.
constexpr std::int32_t kHigh = 2944;
constexpr std::int32_t kSmall = 16;

std::int32_t mirrored_value(std::int32_t position, std::int32_t dim) {
  const std::int32_t sign = (position / kRun) % 2 == 0 ? 1 : -1;
  return sign * kHigh + kSmall * (dim % 13 - 6);
}

// Cancelling values: the second fifth of a row's keys holds kHuge, the fourth -kHuge, and the
// others are as drawn. A fifth of kHuge sums to millions, so that what came before it is rounded at
// a unit near 1 when it joins, what comes between is rounded piece by piece, and what comes after
// kHuge has cancelled is not: each rounding shows in what is left, and so does the order of the
// pieces.
constexpr double kHuge = 57'344;  // 1.75 * 2^15, exact in bf16 and f16.

// An accumulator's format: what every partial sum is rounded to.
using Narrow = float (*)(float);
float as_fp32(float x) { return x; }
float as_f16(float x) {
  return float_of(round_to(static_cast<double>(x), Dtype::kF16), Dtype::kF16);
}
float as_bf16(float x) {
  return float_of(round_to(static_cast<double>(x), Dtype::kBf16), Dtype::kBf16);
}

// chunk256's sums in its order when every weight is 1: a run's chain, runs in order, chunks in
// order. `term` gives the value at a position; weights themselves are a term of 1.
template <class Term>
float chunk256_sum(std::int32_t first, std::int32_t last, Narrow narrow, Term term) {
  float total = 0;
  for (std::int32_t chunk = first / kChunk; chunk <= last / kChunk; ++chunk) {
    float chunk_sum = 0;
    for (std::int32_t run = 0; run < kChunk / kRun; ++run) {
      const std::int32_t from = std::max(first, chunk * kChunk + run * kRun);
      const std::int32_t to = std::min(last, chunk * kChunk + run * kRun + kRun - 1);
      float run_sum = 0;
      for (std::int32_t j = from; j <= to; ++j) run_sum = narrow(run_sum + term(j));
      chunk_sum = narrow(chunk_sum + run_sum);
    }
    total = narrow(total + chunk_sum);
  }
  return total;
}

// One k16 step of a chip's matrix unit: weights of 1 (0 where a key is not seen) times values.
float value_step(specializer::MatrixStep step, Dtype dtype,
                 const std::array<std::uint16_t, kStepKeys>& weights,
                 const std::array<std::uint16_t, kStepKeys>& values, float accumulator) {
  const auto run = [&]<class In>(In) {
    const auto bits = std::bit_cast<std::uint32_t>(accumulator);
    return step == specializer::MatrixStep::kTwoK8
               ? tiles::matrix_step<In, tiles::TwoK8>(weights.data(), 1, values.data(), 1, bits)
               : tiles::matrix_step<In, tiles::OneK16>(weights.data(), 1, values.data(), 1, bits);
  };
  return std::bit_cast<float>(dtype == Dtype::kBf16 ? run(tiles::Bf16Format{})
                                                    : run(tiles::F16Format{}));
}

// tile64's sums in its order when every weight is 1: a chain of matrix steps from 0 a tile, tiles
// folded in order. `value` gives the bits at a position. A narrower accumulator is taken to round
// once a step.
template <class Value>
float tile64_sum(specializer::MatrixStep step, Dtype dtype, std::int32_t first, std::int32_t last,
                 Narrow narrow, Value value) {
  const std::uint16_t one = round_to(1, dtype);
  float total = 0;
  for (std::int32_t tile = first / kTile; tile <= last / kTile; ++tile) {
    float tile_sum = 0;
    for (std::int32_t from = tile * kTile; from < (tile + 1) * kTile; from += kStepKeys) {
      std::array<std::uint16_t, kStepKeys> weights{};
      std::array<std::uint16_t, kStepKeys> values{};
      for (std::int32_t j = std::max(from, first); j < from + kStepKeys && j <= last; ++j) {
        weights[static_cast<std::size_t>(j - from)] = one;
        values[static_cast<std::size_t>(j - from)] = value(j);
      }
      tile_sum = narrow(value_step(step, dtype, weights, values, tile_sum));
    }
    total = narrow(total + tile_sum);
  }
  return total;
}

std::uint16_t expected_at(const DecodeProblem& p, specializer::MatrixStep step, std::int32_t row,
                          std::int32_t head, std::int32_t dim, Narrow narrow) {
  const std::int32_t first = p.first_key(row);
  const std::int32_t last = p.positions[static_cast<std::size_t>(row)];
  const std::int32_t kv_head = head / static_cast<std::int32_t>(p.shape.gqa_ratio);
  const auto value = [&](std::int32_t position) {
    return p.v[static_cast<std::size_t>(p.v_at(row, position, kv_head) + dim)];
  };
  const bool tiles = p.shape.arith == Arith::kTile64;
  const float numerator = tiles ? tile64_sum(step, p.shape.dtype, first, last, narrow, value)
                                : chunk256_sum(first, last, narrow, [&](std::int32_t position) {
                                    return float_of(value(position), p.shape.dtype);
                                  });
  // Weights are summed in fp32 in both: whole numbers below 2^24, exact in any order.
  float denominator = chunk256_sum(first, last, narrow, [](std::int32_t) { return 1.0F; });
  if (p.shape.sinks == Switch::kOn) denominator = narrow(denominator + 1.0F);
  return round_to(static_cast<double>(numerator / denominator), p.shape.dtype);
}

// The exact quotient of mirrored values, from integers alone.
std::uint16_t exact_at(const DecodeProblem& p, std::int32_t row, std::int32_t dim) {
  const std::int32_t first = p.first_key(row);
  const std::int32_t last = p.positions[static_cast<std::size_t>(row)];
  std::int64_t sum = 0;
  for (std::int32_t j = first; j <= last; ++j) sum += mirrored_value(j, dim);
  const std::int64_t count = last - first + 1 + (p.shape.sinks == Switch::kOn ? 1 : 0);
  // Both are whole numbers below 2^24: fp32 holds them, and rounds their quotient once.
  const float quotient = static_cast<float>(sum) / static_cast<float>(count);
  return round_to(static_cast<double>(quotient), p.shape.dtype);
}

void set_keys_to_zero(DecodeProblem& p) {
  for (std::uint16_t& k : p.k) k = is_nan(k, p.shape.dtype) ? k : std::uint16_t{0};
  for (float& sink : p.sinks) sink = 0;
}

void set_values_mirrored(DecodeProblem& p) {
  for (std::int32_t row = 0; row < p.rows; ++row) {
    const std::int32_t last = p.positions[static_cast<std::size_t>(row)];
    for (std::int32_t j = p.first_key(row); j <= last; ++j) {
      for (std::int32_t head = 0; head < p.kv_heads; ++head) {
        const auto at = static_cast<std::size_t>(p.v_at(row, j, head));
        for (std::int32_t d = 0; d < p.head_dim(); ++d) {
          p.v[at + static_cast<std::size_t>(d)] = round_to(mirrored_value(j, d), p.shape.dtype);
        }
      }
    }
  }
}

void set_values_cancelling(DecodeProblem& p) {
  const std::int32_t first = p.first_key(0);
  const std::int32_t fifth = (p.positions[0] - first + 1) / 5;
  const auto fill = [&](std::int32_t from, double value) {
    for (std::int32_t j = from; j < from + fifth; ++j) {
      for (std::int32_t head = 0; head < p.kv_heads; ++head) {
        const auto at = p.v.begin() + p.v_at(0, j, head);
        std::fill(at, at + p.head_dim(), round_to(value, p.shape.dtype));
      }
    }
  };
  fill(first + fifth, kHuge);
  fill(first + 3 * fifth, -kHuge);
}

// Counts outputs that are not as `want` says, and reports the first.
template <class Want>
void compare(const DecodeProblem& p, const std::vector<std::uint16_t>& out, std::string_view part,
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
void note_narrow(const DecodeProblem& p, specializer::MatrixStep step, Narrow narrow,
                 std::string_view name, GateReport& report) {
  std::uint64_t seen = 0;
  std::uint64_t outputs = 0;
  double furthest = 0;
  for (std::int32_t row = 0; row < p.rows; ++row) {
    for (std::int32_t d = 0; d < std::min(p.head_dim(), 13); ++d) {
      const double exact = value_of(exact_at(p, row, d), p.shape.dtype);
      const double got = value_of(expected_at(p, step, row, 0, d, narrow), p.shape.dtype);
      ++outputs;
      if (got == exact) continue;
      ++seen;
      const double off = std::isfinite(got) ? std::fabs(got - exact) / (std::fabs(exact) + kSmall)
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

// tile64 has a fold in each of these, and the one that a device picks for a case depends on its
// size: a host folds every row in its block. Each has to show its order of sums here.
struct NamedSchedule {
  std::string_view name;
  runtime::Tile64Schedule schedule;
};
using Fold = runtime::Tile64Schedule::Fold;
constexpr NamedSchedule kSchedules[] = {{"folded in the block", {Fold::kInBlock, 1}},
                                        {"folded by the last block", {Fold::kByLast, 2}},
                                        {"folded by a second kernel", {Fold::kByKernel, 3}}};

void check_cancelling(const GateInput& input, DecodeProblem problem, GateReport& report) {
  set_values_cancelling(problem);
  const specializer::MatrixStep step = input.kernel->bench().device->target().matrix_step;
  const auto heads = static_cast<std::size_t>(problem.heads());
  const auto head_dim = static_cast<std::size_t>(problem.head_dim());
  std::vector<std::uint16_t> expected(heads * head_dim);  // Of the one row.
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = expected_at(problem, step, 0, static_cast<std::int32_t>(i / head_dim),
                              static_cast<std::int32_t>(i % head_dim), as_fp32);
  }
  const auto check = [&](const Result<std::vector<std::uint16_t>>& out, std::string_view folded) {
    const std::string part = fmt::format("weights of 1 on cancelling values up to position {}{}",
                                         problem.positions[0], folded);
    if (!out) return report.fail(part + ": " + out.error().message);
    compare(problem, *out, part, report, [&](std::int32_t, std::int32_t head, std::int32_t d) {
      return expected[static_cast<std::size_t>(head) * head_dim + static_cast<std::size_t>(d)];
    });
  };
  if (problem.shape.arith != Arith::kTile64) {
    check(input.kernel->run(problem), "");
  } else {
    for (const NamedSchedule& one : kSchedules) {
      check(input.kernel->run(problem, one.schedule), fmt::format(", {}", one.name));
    }
  }
  const std::int32_t piece = problem.shape.arith == Arith::kTile64 ? kTile : kChunk;
  if (problem.first_key(0) / piece == problem.positions[0] / piece) {
    report.notes.push_back(
        fmt::format("the row at position {} lies in one piece of {} keys: it shows no order of "
                    "pieces",
                    problem.positions[0], piece));
  }
}

}  // namespace

GateReport gate_sums(const GateInput& input) {
  GateReport report;
  report.gate = Gate::kSums;
  const Arith arith = input.kernel->shape().arith;
  if (arith != Arith::kChunk256 && arith != Arith::kTile64) {
    report.fail("the gate knows no order of sums for this arithmetic");
    return report;
  }
  auto made = make_decode(input.decode_case->recipe);
  if (!made) {
    report.fail(made.error().message);
    return report;
  }
  DecodeProblem& problem = *made;
  set_keys_to_zero(problem);
  for (const std::int32_t row : {0, problem.rows / 2, problem.rows - 1}) {
    check_cancelling(input, problem.take({row}), report);
  }
  set_values_mirrored(problem);
  auto mirrored = input.kernel->run(problem);
  if (!mirrored) {
    report.fail(mirrored.error().message);
    return report;
  }
  compare(
      problem, *mirrored, "weights of 1 on mirrored integers", report,
      [&](std::int32_t row, std::int32_t, std::int32_t d) { return exact_at(problem, row, d); });
  const specializer::MatrixStep step = input.kernel->bench().device->target().matrix_step;
  note_narrow(problem, step, as_f16, "f16", report);
  note_narrow(problem, step, as_bf16, "bf16", report);
  return report;
}

}  // namespace broach::contract
