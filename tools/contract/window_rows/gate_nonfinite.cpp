#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "tools/contract/harness/number.hpp"
#include "tools/contract/window_rows/gates.hpp"
#include "tools/contract/window_rows/launch_ways.hpp"
#include "tools/contract/window_rows/range.hpp"
#include "tools/contract/window_rows/unit_weights.hpp"

namespace broach::contract::window_rows {
namespace {

// More only repeat what these show.
constexpr std::int32_t kRows = 5;
constexpr std::int32_t kPrefillRows = 40;  // Three bands of a block.

// A change of the inputs, and which (row, query head) can see it.
struct Plant {
  std::string name;
  std::function<void(Problem&)> plant;
  std::function<bool(std::int32_t row, std::int32_t head)> sees;
};

// Where a plant goes: a row, and one of its keys, chosen so that some rows see it and others do
// not wherever the case has such rows.
struct Place {
  std::int32_t row;
  std::int32_t position;
  std::int32_t kv_head;
  std::int32_t dim;
};

// Its plants refer to it.
class Planter {
 public:
  explicit Planter(const Problem& problem) : p_(problem) {
    row_ = 0;
    for (std::int32_t row = 0; row < p_.rows; ++row) {
      if (keys_of(row) > keys_of(row_)) row_ = row;
    }
  }

  std::vector<Plant> plants() const;
  /// The row that sees most keys; query plants are in it.
  std::int32_t row() const noexcept { return row_; }
  Plant in_query(double value, const std::string& name) const;

 private:
  std::int32_t last_of(std::int32_t row) const { return p_.last_key(row); }
  std::int32_t keys_of(std::int32_t row) const { return last_of(row) - p_.first_key(row) + 1; }

  std::uint16_t bits(double value) const { return round_to(value, p_.shape.dtype); }

  // Rows of the same slot whose window covers the position, through the KV head's query heads.
  bool sees(const Place& place, std::int32_t row, std::int32_t head) const {
    return p_.slots[static_cast<std::size_t>(row)] ==
               p_.slots[static_cast<std::size_t>(place.row)] &&
           p_.first_key(row) <= place.position && place.position <= last_of(row) &&
           head / static_cast<std::int32_t>(p_.shape.gqa_ratio) == place.kv_head;
  }

  Plant in_key(const Place& place, double value, const std::string& name) const;
  Plant in_value(const Place& place, double value, const std::string& name) const;
  Plant both_infinities(const Place& place, std::int32_t other_position) const;
  Plant beyond_fp32(const Place& place) const;

  const Problem& p_;
  std::int32_t row_;
};

Plant Planter::in_query(double value, const std::string& name) const {
  const std::int32_t head = p_.heads() - 1;
  const auto at = static_cast<std::size_t>(p_.q_at(row_, head) + p_.head_dim() / 2);
  return {name + " in a query", [at, planted = bits(value)](Problem& p) { p.q[at] = planted; },
          [this, head](std::int32_t row, std::int32_t of) { return row == row_ && of == head; }};
}

Plant Planter::in_key(const Place& place, double value, const std::string& name) const {
  const auto at =
      static_cast<std::size_t>(p_.k_at(place.row, place.position, place.kv_head) + place.dim);
  return {name + " in a key", [at, planted = bits(value)](Problem& p) { p.k[at] = planted; },
          [this, place](std::int32_t row, std::int32_t head) { return sees(place, row, head); }};
}

Plant Planter::in_value(const Place& place, double value, const std::string& name) const {
  const auto at =
      static_cast<std::size_t>(p_.v_at(place.row, place.position, place.kv_head) + place.dim);
  return {name + " in a value", [at, planted = bits(value)](Problem& p) { p.v[at] = planted; },
          [this, place](std::int32_t row, std::int32_t head) { return sees(place, row, head); }};
}

Plant Planter::both_infinities(const Place& place, std::int32_t other_position) const {
  Plant one = in_value(place, std::numeric_limits<double>::infinity(), "");
  Place other_place = place;
  other_place.position = other_position;
  Plant other = in_value(other_place, -std::numeric_limits<double>::infinity(), "");
  return {"+inf and -inf in one column of the values",
          [one, other](Problem& p) {
            one.plant(p);
            other.plant(p);
          },
          [one, other](std::int32_t row, std::int32_t head) {
            return one.sees(row, head) || other.sees(row, head);
          }};
}

// A key whose score lies 200 below 0 for one query head, so that its weight is below fp32's least
// but not below float64's, with +inf as its value.
Plant Planter::beyond_fp32(const Place& place) const {
  const auto ratio = static_cast<std::int32_t>(p_.shape.gqa_ratio);
  const std::int32_t head = place.kv_head * ratio;
  const Plant value = in_value(place, std::numeric_limits<double>::infinity(), "");
  return {"+inf at a key of weight e^-200",
          [this, place, head, value](Problem& p) {
            value.plant(p);
            const std::uint16_t* q = p.q.data() + p.q_at(place.row, head);
            double squares = 0;
            for (std::int32_t d = 0; d < p.head_dim(); ++d) {
              squares += std::pow(value_of(q[d], p.shape.dtype), 2);
            }
            const double factor = -200.0 / (static_cast<double>(p.scale) * squares);
            std::uint16_t* k = p.k.data() + p.k_at(place.row, place.position, place.kv_head);
            for (std::int32_t d = 0; d < p.head_dim(); ++d) {
              k[d] = bits(factor * value_of(q[d], p.shape.dtype));
            }
          },
          value.sees};
}

std::vector<Plant> Planter::plants() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  const std::int32_t first = p_.first_key(row_);
  // The row's first key: what moves on by one row is the first to leave. And one in the middle.
  const Place leaving{row_, first, 0, 1};
  const Place middle{row_, first + keys_of(row_) / 2, p_.kv_heads - 1, p_.head_dim() - 1};
  std::vector<Plant> plants;
  for (const auto& [value, name] :
       {std::pair{nan, "NaN"}, {kInfinity, "+inf"}, {-kInfinity, "-inf"}}) {
    plants.push_back(in_query(value, name));
    plants.push_back(in_key(leaving, value, name));
    plants.push_back(in_value(middle, value, name));
  }
  plants.push_back(in_value(leaving, nan, "NaN"));
  plants.push_back(both_infinities(middle, first));
  plants.push_back(beyond_fp32(leaving));
  return plants;
}

// Every (row, head) that does not see a plant keeps its bits.
std::string disturbed(const Problem& problem, const Plant& plant,
                      const std::vector<std::uint16_t>& clean,
                      const std::vector<std::uint16_t>& out, std::uint64_t& comparisons) {
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    for (std::int32_t head = 0; head < problem.heads(); ++head) {
      if (plant.sees(row, head)) continue;
      const auto at = static_cast<std::size_t>(problem.out_at(row, head));
      comparisons += problem.shape.head_dim;
      for (std::size_t d = 0; d < problem.shape.head_dim; ++d) {
        if (out[at + d] == clean[at + d]) continue;
        return fmt::format("row {} head {} does not see it but changed at dim {}: {:04x} to {:04x}",
                           row, head, d, clean[at + d], out[at + d]);
      }
    }
  }
  return {};
}

// The part of a case that the gate works with. Of a decode: rows spread over it, so that streams
// and edges differ. Of a prefill: the first rows of its sequences, which share blocks and see each
// other's keys; an image that goes on behind them ends with them.
Recipe few_rows(const Recipe& recipe) {
  Recipe few = recipe;
  few.rows.clear();
  if (recipe.shape.form == Form::kDecode) {
    const auto rows = static_cast<std::int32_t>(recipe.rows.size());
    const std::int32_t count = std::min(rows, kRows);
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int32_t row = count == 1 ? 0 : i * (rows - 1) / (count - 1);
      few.rows.push_back(recipe.rows[static_cast<std::size_t>(row)]);
    }
    return few;
  }
  few.sequence_rows.clear();
  std::int32_t left = kPrefillRows;
  std::size_t begin = 0;
  for (const std::int32_t rows : recipe.sequence_rows) {
    const std::int32_t taken = std::min(rows, left);
    if (taken == 0) break;
    const std::int32_t past = recipe.rows[begin].position + taken;
    for (std::int32_t i = 0; i < taken; ++i) {
      RowAt row = recipe.rows[begin + static_cast<std::size_t>(i)];
      if (row.last >= past) row.last = past - 1;
      few.rows.push_back(row);
    }
    few.sequence_rows.push_back(taken);
    left -= taken;
    begin += static_cast<std::size_t>(rows);
  }
  return few;
}

// Runs a problem in every way of the kernel. The first way's outputs; the others' have to be theirs
// bit for bit.
Result<std::vector<std::uint16_t>> run_all_ways(const GateInput& input,
                                                const std::vector<LaunchWay>& ways,
                                                const Problem& problem, std::string_view part,
                                                GateReport& report) {
  auto uploaded = DeviceProblem::upload(*input.kernel->bench().device, problem);
  if (!uploaded) return uploaded.error();
  auto first = uploaded->run(ways.front().decoder, Poison::kNan);
  if (!first) return first;
  const std::vector<std::int32_t> same = first_rows(problem.rows);
  for (std::size_t i = 1; i < ways.size(); ++i) {
    auto other = uploaded->run(ways[i].decoder, Poison::kNan);
    if (!other) return other;
    report.comparisons += other->size();
    const std::string differs = difference(problem, *other, problem, *first, same);
    if (!differs.empty()) report.fail(fmt::format("{}, {}: {}", part, ways[i].name, differs));
  }
  return first;
}

// The rows whose outputs are judged by range under plant `nth`: a prefill has many that see the
// same, and each plant takes others of them. Bits are compared in all rows.
std::vector<std::int32_t> judged_rows(const Problem& problem, std::int32_t most_keys_row,
                                      std::size_t nth) {
  if (!problem.is_prefill()) return first_rows(problem.rows);
  constexpr std::int32_t kStep = 5;
  std::vector<std::int32_t> rows{most_keys_row};
  for (auto row = static_cast<std::int32_t>(nth % kStep); row < problem.rows; row += kStep) {
    if (row != most_keys_row) rows.push_back(row);
  }
  return rows;
}

void try_plant(const GateInput& input, const LaunchWay& way, const Problem& problem,
               const Plant& plant, const std::vector<std::int32_t>& judged,
               const std::vector<std::uint16_t>& clean, GateReport& report) {
  Problem planted = problem;
  plant.plant(planted);
  auto out = run_all_ways(input, {way}, planted, plant.name, report);
  if (!out) {
    report.fail(fmt::format("{}: {}", plant.name, out.error().message));
    return;
  }
  auto range = check_outputs(planted, *out, input.options.threads, judged);
  if (!range) {
    report.fail(fmt::format("{}: {}", plant.name, range.error().message));
    return;
  }
  report.judge(*range, plant.name);
  const std::string changed = disturbed(problem, plant, clean, *out, report.comparisons);
  if (!changed.empty()) report.fail(fmt::format("{}: {}", plant.name, changed));
}

// A neighbour that is computed again in float64 shows only where float64 rounds to other bits than
// the form's sums do. With weights of 1 on values that cancel, that is nearly everywhere; how many
// is counted, so that a gate that could see nothing says so.
void try_neighbours(const GateInput& input, const std::vector<LaunchWay>& ways, Problem problem,
                    GateReport& report) {
  constexpr std::string_view kPart = "NaN in a query, beside sums that cancel";
  set_keys_to_zero(problem);
  set_values_cancelling(problem);
  auto clean = run_all_ways(input, ways, problem, kPart, report);
  if (!clean) return report.fail(fmt::format("{}: {}", kPart, clean.error().message));
  const Planter planter(problem);  // Outlives its plant.
  const Plant plant = planter.in_query(std::nan(""), "NaN");
  Problem planted = problem;
  plant.plant(planted);
  auto out = run_all_ways(input, ways, planted, kPart, report);
  if (!out) return report.fail(fmt::format("{}: {}", kPart, out.error().message));
  const std::string changed = disturbed(problem, plant, *clean, *out, report.comparisons);
  if (!changed.empty()) report.fail(fmt::format("{}: {}", kPart, changed));
  const Apart told = apart_from_float64(problem, *clean);
  report.notes.push_back(
      fmt::format("{} of {} outputs beside the plant have other bits than float64's: there a "
                  "neighbour that is computed again shows",
                  told.apart, told.outputs));
}

}  // namespace

GateReport gate_nonfinite(const GateInput& input) {
  GateReport report;
  report.gate = Gate::kNonFinite;
  Recipe recipe = few_rows(input.tried->recipe);
  recipe.unseen = Unseen::kStale;
  auto stale = make_problem(recipe);
  recipe.unseen = Unseen::kNan;
  auto made = make_problem(recipe);
  if (!stale || !made) {
    report.fail((stale ? made : stale).error().message);
    return report;
  }
  const Problem& problem = *made;
  auto ways = launch_ways(*input.kernel);
  if (!ways) {
    report.fail(ways.error().message);
    return report;
  }
  auto clean = input.kernel->run(*stale);
  auto beside_nan = run_all_ways(input, *ways, problem, "no plant", report);
  if (!clean || !beside_nan) {
    report.fail((clean ? beside_nan : clean).error().message);
    return report;
  }
  // What no row sees: finite in one run, NaN in the other.
  const Plant unseen{"NaN in every cell that no row sees", nullptr,
                     [](std::int32_t, std::int32_t) { return false; }};
  const std::string changed = disturbed(problem, unseen, *clean, *beside_nan, report.comparisons);
  if (!changed.empty()) report.fail(fmt::format("{}: {}", unseen.name, changed));
  try_neighbours(input, *ways, problem, report);
  if (input.options.ends_with(report)) return report;
  // Ways take turns, so that each sees every kind of plant: queries, keys and values come by
  // threes.
  const Planter planter(problem);  // Outlives its plants.
  const std::vector<Plant> plants = planter.plants();
  for (std::size_t i = 0; i < plants.size(); ++i) {
    if (input.options.ends_with(report)) return report;
    const LaunchWay& way = (*ways)[(i + i / 3) % ways->size()];
    try_plant(input, way, problem, plants[i], judged_rows(problem, planter.row(), i), *clean,
              report);
  }
  if (report.range.nonfinite_matched + report.range.nonfinite_mismatch == 0) {
    report.fail("no plant reached an output: the gate saw nothing");
  }
  return report;
}

}  // namespace broach::contract::window_rows
