#include "tools/contract/sparse_rows/trial.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "tools/contract/harness/digests.hpp"
#include "tools/contract/harness/number.hpp"
#include "tools/contract/sparse_rows/kernel.hpp"
#include "tools/contract/sparse_rows/range.hpp"

namespace broach::contract::sparse_rows {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Bytes = std::vector<std::byte>;

std::size_t element_bytes(const Problem& problem) {
  return problem.recipe.shape.q_dtype == QueryDtype::kF32 ? 4 : 2;
}

/// What one (row, query head) of a launch left.
std::span<const std::byte> head_of(const Problem& problem, const Bytes& out, std::size_t row,
                                   std::int32_t head) {
  const std::size_t bytes = problem.head_dim() * element_bytes(problem);
  return std::span(out).subspan(problem.q_at(row, head) * element_bytes(problem), bytes);
}

class SparseRowsTrial final : public Trial {
 public:
  SparseRowsTrial(Kernel kernel, const CaseSpec& tried)
      : kernel_(std::move(kernel)), problem_(make_problem(tried.recipe)), twins_(tried.twins) {}

  const cache::Key& key() const noexcept override { return kernel_.key(); }

  Result<Bytes> run(Poison poison) override {
    return kernel_.run(problem_, poison, poison == Poison::kNan ? Splits::kOne : Splits::kPartEach);
  }

  std::string place_of(std::size_t byte) const override {
    const std::size_t element = byte / element_bytes(problem_);
    const std::size_t d = problem_.head_dim();
    const auto heads = static_cast<std::size_t>(problem_.heads());
    return fmt::format("row {} head {} dim {}", element / d / heads, element / d % heads,
                       element % d);
  }

  void nonfinite(GateReport& report, const GateOptions& options) override {
    auto clean = kernel_.run(problem_);
    if (!clean) return report.fail(clean.error().message);
    // A key that some row selected and, where there is one, another of its stream did not.
    const std::size_t row = problem_.recipe.rows.size() / 2;
    const std::vector<std::int32_t> keys = problem_.keys(row);
    if (keys.empty()) return report.fail("the middle row of the case selects no key");
    const std::int32_t key = keys[keys.size() / 3];
    const std::int32_t stream = problem_.recipe.rows[row].stream;
    for (const float value : {kNan, kInfinity, -kInfinity}) {
      for (const char tensor : {'q', 'k', 'v'}) {
        Problem planted = problem_;
        if (tensor == 'q') planted.q[problem_.q_at(row, 1 % problem_.heads()) + 3] = value;
        if (tensor == 'k') planted.k[problem_.kv_at(stream, key, 0) + 3] = value;
        if (tensor == 'v') planted.v[problem_.kv_at(stream, key, 0) + 3] = value;
        try_plant(report, planted, *clean, options,
                  fmt::format("{} in {}", static_cast<double>(value), tensor));
        if (options.ends_with(report)) return;
      }
    }
    plant_unselected(report, *clean, options);
    if (options.ends_with(report) || keys.size() < 2) return;
    Problem both = problem_;
    both.v[problem_.kv_at(stream, key, 0) + 5] = kInfinity;
    both.v[problem_.kv_at(stream, keys.back(), 0) + 5] = -kInfinity;
    try_plant(report, both, *clean, options, "infinities of both signs in a column");
    // e^-200 is nothing in fp32: a key far from every query of the row, with an infinite value.
    Problem light = problem_;
    const float scale = problem_.recipe.scale;
    double magnitude = 0;
    for (std::size_t i = 0; i < problem_.head_dim(); ++i) {
      magnitude += std::abs(static_cast<double>(problem_.q[problem_.q_at(row, 0) + i]));
    }
    for (std::size_t i = 0; i < problem_.head_dim(); ++i) {
      const float q = problem_.q[problem_.q_at(row, 0) + i];
      const double away = -200.0 / (static_cast<double>(scale) * magnitude);
      light.k[problem_.kv_at(stream, key, 0) + i] =
          static_cast<float>(value_of(round_to(q < 0 ? -away : away, problem_.recipe.shape.dtype),
                                      problem_.recipe.shape.dtype));
    }
    light.v[problem_.kv_at(stream, key, 0) + 5] = kInfinity;
    try_plant(report, light, *clean, options, "an infinity at a weight of e^-200");
  }

  void shapes(GateReport& report, const GateOptions& options) override {
    auto out = kernel_.run(problem_);
    if (!out) return report.fail(out.error().message);
    report.judge(judge(problem_, *out, options.threads), "the case");
    if (!options.digest.empty() && digest_of(*out) != options.digest) {
      report.fail(
          fmt::format("the outputs' digest is {}, not {}", digest_of(*out), options.digest));
    }
    if (options.ends_with(report)) return;
    const auto all = all_rows();
    if (options.host != nullptr) {
      auto host = Kernel::load(*options.host, kernel_.shape());
      compare(report, host ? host->run(problem_) : Result<Bytes>(host.error()), *out, all,
              "the host target");
    }
    if (kernel_.shape().tile == SparseTile::kScalar) {
      compare(report, kernel_.run(problem_, Poison::kFinite, Splits::kPartEach), *out, all,
              "a block a part");
    }
    // Rows alone and in other company: at every place of a group of four.
    for (const std::size_t row : {std::size_t{0}, all.size() / 2, all.size() - 1}) {
      compare(report, kernel_.run(with_rows(problem_, {row})), *out, {row}, "a row alone");
    }
    std::vector<std::size_t> turned(all.rbegin(), all.rend());
    compare(report, kernel_.run(with_rows(problem_, turned)), *out, turned, "rows reversed");
    const auto cut = static_cast<std::ptrdiff_t>(all.size() / 3 + 1);
    if (cut < static_cast<std::ptrdiff_t>(all.size())) {
      const std::vector<std::size_t> rest(all.begin() + cut, all.end());
      compare(report, kernel_.run(with_rows(problem_, rest)), *out, rest, "cut in two");
    }
    Problem shifted = problem_;
    shifted.recipe.slot_shift = 2;
    compare(report, kernel_.run(shifted), *out, all, "other slots");
    variants(report, *out, all);
  }

  /// Every P is 1 and V holds integers, whose sums fp32 holds: the output is the exact quotient's
  /// rounding. An f16 accumulator would overflow where a row sees its first 600 keys of one sign
  /// before the others, and a bf16 one would lose every third unit.
  void sums(GateReport& report, const GateOptions& /*options*/) override {
    Recipe recipe = problem_.recipe;
    recipe.values = Values::kUnit;
    const Problem unit = make_problem(recipe);
    auto out = kernel_.run(unit);
    if (!out) return report.fail(out.error().message);
    for (std::size_t row = 0; row < recipe.rows.size(); ++row) {
      const std::vector<std::int32_t> keys = unit.keys(row);
      for (std::int32_t head = 0; head < unit.heads(); ++head) {
        const std::int32_t kv_head = head / static_cast<std::int32_t>(recipe.shape.gqa_ratio);
        for (std::size_t i = 0; i < unit.head_dim(); ++i) {
          double sum = 0;
          for (const std::int32_t key : keys) {
            sum +=
                static_cast<double>(unit.v[unit.kv_at(recipe.rows[row].stream, key, kv_head) + i]);
          }
          const float quotient =
              keys.empty() ? 0.0F : static_cast<float>(sum) / static_cast<float>(keys.size());
          const double want =
              recipe.shape.q_dtype == QueryDtype::kF32
                  ? static_cast<double>(quotient)
                  : value_of(round_to(static_cast<double>(quotient), recipe.shape.dtype),
                             recipe.shape.dtype);
          ++report.comparisons;
          const double got = output_at(unit, *out, unit.q_at(row, head) + i);
          if (got == want) continue;
          report.fail(fmt::format("row {} head {} dim {}: {}, not {}", row, head, i, got, want));
          return;
        }
      }
    }
  }

 private:
  /// Holds rows of a launch against the same rows of the whole one.
  void compare(GateReport& report, Result<Bytes> got, const Bytes& whole,
               const std::vector<std::size_t>& rows, std::string_view part) const {
    if (!got) return report.fail(fmt::format("{}: {}", part, got.error().message));
    const std::size_t row_bytes =
        static_cast<std::size_t>(problem_.heads()) * problem_.head_dim() * element_bytes(problem_);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto a = std::span(*got).subspan(i * row_bytes, row_bytes);
      const auto b = std::span(whole).subspan(rows[i] * row_bytes, row_bytes);
      report.comparisons += row_bytes / element_bytes(problem_);
      const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
      if (static_cast<std::size_t>(at) == row_bytes) continue;
      report.fail(fmt::format("{}: other bits, first at {}", part,
                              place_of(rows[i] * row_bytes + static_cast<std::size_t>(at))));
    }
  }

  std::vector<std::size_t> all_rows() const {
    std::vector<std::size_t> rows(problem_.recipe.rows.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    return rows;
  }

  void variants(GateReport& report, const Bytes& out, const std::vector<std::size_t>& all) const {
    const auto as = [&](const SparseRowsShape& shape, const specializer::Variant& variant,
                        std::string_view part) {
      auto kernel = Kernel::load(kernel_.bench(), shape, variant);
      if (!kernel && kernel.error().code == ErrorCode::kLimitExceeded) {
        report.notes.push_back(fmt::format("{}: {}", part, kernel.error().message));
        return;
      }
      if (!kernel) return report.fail(fmt::format("{}: {}", part, kernel.error().message));
      Problem problem = problem_;
      problem.recipe.shape = shape;
      compare(report, kernel->run(problem), out, all, part);
    };
    as(kernel_.shape(), {"", Switch::kOn}, "the generic kernel");
    if (twins_ == Twins::kGeneric) return;
    as(in_another_layout(kernel_.shape()), {}, "another layout");
  }

  /// A key before a row's end that no row selected reaches nobody, whatever it holds.
  void plant_unselected(GateReport& report, const Bytes& clean, const GateOptions& options) const {
    const auto key = unselected_key();
    if (!key) {
      report.notes.push_back("every key is selected by some row: none can be planted beside them");
      return;
    }
    const std::size_t at = problem_.kv_at(key->stream, key->position, 0);
    for (const float value : {kNan, kInfinity, -kInfinity}) {
      Problem planted = problem_;
      planted.k[at + 3] = value;
      planted.v[at + 3] = value;
      try_plant(report, planted, clean, options,
                fmt::format("{} in position {} of stream {}, which no row selected",
                            static_cast<double>(value), key->position, key->stream));
      if (options.ends_with(report)) return;
    }
  }

  /// The earliest key that a row could have selected and none did.
  std::optional<RowAt> unselected_key() const {
    std::vector<std::vector<bool>> seen(static_cast<std::size_t>(problem_.recipe.streams));
    for (std::size_t row = 0; row < problem_.recipe.rows.size(); ++row) {
      const RowAt& at = problem_.recipe.rows[row];
      auto& of_stream = seen[static_cast<std::size_t>(at.stream)];
      of_stream.resize(std::max(of_stream.size(), static_cast<std::size_t>(at.position) + 1));
      for (const std::int32_t key : problem_.keys(row)) {
        of_stream[static_cast<std::size_t>(key)] = true;
      }
    }
    for (std::size_t stream = 0; stream < seen.size(); ++stream) {
      const auto found = std::find(seen[stream].begin(), seen[stream].end(), false);
      if (found == seen[stream].end()) continue;
      return RowAt{static_cast<std::int32_t>(stream),
                   static_cast<std::int32_t>(found - seen[stream].begin())};
    }
    return std::nullopt;
  }

  void try_plant(GateReport& report, const Problem& planted, const Bytes& clean,
                 const GateOptions& options, const std::string& part) const {
    auto out = kernel_.run(planted);
    if (!out) return report.fail(fmt::format("{}: {}", part, out.error().message));
    report.judge(judge(planted, *out, options.threads), part);
    // Heads whose own inputs are the same have the same bits.
    for (std::size_t row = 0; row < planted.recipe.rows.size(); ++row) {
      for (std::int32_t head = 0; head < planted.heads(); ++head) {
        if (sees_difference(planted, row, head)) continue;
        report.comparisons += planted.head_dim();
        const auto a = head_of(planted, *out, row, head);
        const auto b = head_of(planted, clean, row, head);
        if (std::equal(a.begin(), a.end(), b.begin())) continue;
        report.fail(
            fmt::format("{}: row {} head {} does not see it and has other bits", part, row, head));
      }
    }
  }

  bool sees_difference(const Problem& planted, std::size_t row, std::int32_t head) const {
    const std::size_t d = planted.head_dim();
    const auto differs = [&](const std::vector<float>& a, const std::vector<float>& b,
                             std::size_t at) {
      for (std::size_t i = at; i < at + d; ++i) {
        if (!(a[i] == b[i])) return true;  // A NaN differs from everything.
      }
      return false;
    };
    if (differs(planted.q, problem_.q, planted.q_at(row, head))) return true;
    const std::int32_t kv_head = head / static_cast<std::int32_t>(planted.recipe.shape.gqa_ratio);
    for (const std::int32_t key : planted.keys(row)) {
      const std::size_t at = planted.kv_at(planted.recipe.rows[row].stream, key, kv_head);
      if (differs(planted.k, problem_.k, at) || differs(planted.v, problem_.v, at)) return true;
    }
    return false;
  }

  Kernel kernel_;
  Problem problem_;
  Twins twins_;
};

}  // namespace

Result<std::unique_ptr<Trial>> load_trial(const Bench& bench, const CaseSpec& tried,
                                          const specializer::Variant& variant) {
  auto kernel = Kernel::load(bench, tried.recipe.shape, variant);
  if (!kernel) return kernel.error();
  return std::unique_ptr<Trial>(std::make_unique<SparseRowsTrial>(std::move(*kernel), tried));
}

}  // namespace broach::contract::sparse_rows
