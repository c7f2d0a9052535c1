#include "tools/contract/window_rows/gates.hpp"

#include <fmt/core.h>

#include <utility>

#include "cache/key.hpp"

namespace broach::contract {
namespace {

constexpr std::size_t kKeptFailures = 8;

}  // namespace

std::string_view name_of(Gate gate) noexcept {
  switch (gate) {
    case Gate::kNonFinite:
      return "non-finite";
    case Gate::kRepeat:
      return "repeat";
    case Gate::kShapes:
      return "shapes";
    case Gate::kSums:
      return "sums";
  }
  return "unknown";
}

void GateReport::fail(std::string words) {
  passed = false;
  if (failures.size() < kKeptFailures) failures.push_back(std::move(words));
}

void GateReport::judge(const RangeReport& report, std::string_view part) {
  range.add(report);
  comparisons += report.checked;
  if (report.passed()) return;
  std::string words = fmt::format("{}: {} outputs out of range and {} of another class", part,
                                  report.out_of_range, report.nonfinite_mismatch);
  if (report.first) words += "; first: " + words_of(*report.first);
  if (report.worst && report.worst->steps_outside > report.first->steps_outside) {
    words += "; worst: " + words_of(*report.worst);
  }
  fail(std::move(words));
}

GateReport run_gate(Gate gate, const GateInput& input) {
  switch (gate) {
    case Gate::kNonFinite:
      return gate_nonfinite(input);
    case Gate::kRepeat:
      return gate_repeat(input);
    case Gate::kShapes:
      return gate_shapes(input);
    case Gate::kSums:
      return gate_sums(input);
  }
  GateReport unknown;
  unknown.fail("no such gate");
  return unknown;
}

std::string difference(const DecodeProblem& a_problem, const std::vector<std::uint16_t>& a,
                       const DecodeProblem& b_problem, const std::vector<std::uint16_t>& b,
                       const std::vector<std::int32_t>& where) {
  std::uint64_t count = 0;
  std::string first;
  for (std::size_t i = 0; i < where.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    for (std::int32_t head = 0; head < a_problem.heads(); ++head) {
      const auto a_at = static_cast<std::size_t>(a_problem.out_at(row, head));
      const auto b_at = static_cast<std::size_t>(b_problem.out_at(where[i], head));
      for (std::size_t d = 0; d < a_problem.shape.head_dim; ++d) {
        if (a[a_at + d] == b[b_at + d]) continue;
        if (count++ == 0) {
          first = fmt::format("row {} head {} dim {} has bits {:04x}, not {:04x}", row, head, d,
                              a[a_at + d], b[b_at + d]);
        }
      }
    }
  }
  return count == 0 ? first : fmt::format("{} outputs differ; {}", count, first);
}

std::string digest_of(const DecodeProblem& problem, const std::vector<std::uint16_t>& out) {
  cache::KeyBuilder digest;
  std::string bytes;
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    for (std::int32_t head = 0; head < problem.heads(); ++head) {
      const auto at = static_cast<std::size_t>(problem.out_at(row, head));
      for (std::size_t d = 0; d < problem.shape.head_dim; ++d) {
        bytes.push_back(static_cast<char>(out[at + d] & 0xff));
        bytes.push_back(static_cast<char>(out[at + d] >> 8));
      }
    }
  }
  digest.field("outputs", bytes);
  return digest.finish().key.hex();
}

}  // namespace broach::contract
