#include "tools/contract/qk_rows/trial.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "tools/contract/harness/digests.hpp"
#include "tools/contract/harness/number.hpp"
#include "tools/contract/qk_rows/kernel.hpp"
#include "tools/contract/qk_rows/range.hpp"

namespace broach::contract::qk_rows {
namespace {

using Outputs = std::vector<std::uint16_t>;

class QkRowsTrial final : public Trial {
 public:
  QkRowsTrial(Kernel kernel, Recipe recipe)
      : kernel_(std::move(kernel)), problem_(make_problem(recipe)) {}

  const cache::Key& key() const noexcept override { return kernel_.key(); }

  Result<std::vector<std::byte>> run(Poison poison) override {
    auto out = kernel_.run(problem_, poison, poison == Poison::kNan ? 1 : 3);
    if (!out) return out.error();
    std::vector<std::byte> bytes(out->size() * sizeof(std::uint16_t));
    std::memcpy(bytes.data(), out->data(), bytes.size());
    return bytes;
  }

  std::string place_of(std::size_t byte) const override {
    return words_at(byte / sizeof(std::uint16_t));
  }

  void nonfinite(GateReport& report, const GateOptions& options) override {
    auto clean = kernel_.run(problem_);
    if (!clean) return report.fail(clean.error().message);
    const bool f16 = problem_.recipe.shape.dtype == Dtype::kF16;
    const auto infinity = static_cast<std::uint16_t>(f16 ? 0x7c00 : 0x7f80);
    const std::size_t row = problem_.recipe.rows.size() / 2;
    const std::size_t d = problem_.head_dim();
    for (const std::uint16_t bad : {static_cast<std::uint16_t>(infinity | 1), infinity,
                                    static_cast<std::uint16_t>(infinity | 0x8000)}) {
      for (const std::size_t head :
           {std::size_t{0}, problem_.q_heads(), problem_.q_heads() + problem_.kv_heads()}) {
        Problem planted = problem_;
        planted.head(row, head)[3] = bad;
        auto out = kernel_.run(planted);
        const std::string part = fmt::format("{:#06x} in head {}", bad, head);
        if (!out) return report.fail(fmt::format("{}: {}", part, out.error().message));
        report.judge(judge(planted, *out, options.threads), part);
        const std::size_t first = (row * problem_.heads() + head) * d;
        for (std::size_t i = 0; i < out->size(); ++i) {
          if (i >= first && i < first + d) continue;
          ++report.comparisons;
          if ((*out)[i] == (*clean)[i]) continue;
          report.fail(fmt::format("{}: {} has other bits", part, words_at(i)));
          break;
        }
        if (options.ends_with(report)) return;
      }
    }
  }

  void shapes(GateReport& report, const GateOptions& options) override {
    auto out = kernel_.run(problem_);
    if (!out) return report.fail(out.error().message);
    report.judge(judge(problem_, *out, options.threads), "the case");
    const std::string digest = digest_of(std::as_bytes(std::span(*out)));
    if (!options.digest.empty() && digest != options.digest) {
      report.fail(fmt::format("the outputs' digest is {}, not {}", digest, options.digest));
    }
    if (options.ends_with(report)) return;
    std::vector<std::size_t> all(problem_.recipe.rows.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (options.host != nullptr) {
      auto host = Kernel::load(*options.host, kernel_.shape());
      compare(report, host ? host->run(problem_) : Result<Outputs>(host.error()), *out, all,
              "the host target");
    }
    compare(report, kernel_.run(problem_, Poison::kFinite, 5), *out, all, "five blocks a row");
    for (const std::size_t row : {std::size_t{0}, all.size() - 1}) {
      compare(report, kernel_.run(with_rows(problem_, {row})), *out, {row}, "a row alone");
    }
    Problem shifted = problem_;
    shifted.recipe.slot_shift = 2;
    compare(report, kernel_.run(shifted), *out, all, "other slots");
    auto generic = Kernel::load(kernel_.bench(), kernel_.shape(), {"", Switch::kOn});
    compare(report, generic ? generic->run(problem_) : Result<Outputs>(generic.error()), *out, all,
            "the generic kernel");
    if (problem_.recipe.shape.kv_layout.kind != KvLayoutKind::kLinear) return;
    Problem paged = problem_;
    paged.recipe.shape.kv_layout = {KvLayoutKind::kPaged, 16};
    auto other = Kernel::load(kernel_.bench(), paged.recipe.shape);
    compare(report, other ? other->run(paged) : Result<Outputs>(other.error()), *out, all, "pages");
  }

  /// Integers whose squares' sum fp32 holds, at an angle of zero, where a rotation changes nothing:
  /// every step is one fp32 operation on known numbers. An fp16 sum of squares would overflow and
  /// leave zeros; a bf16 one would miss the sum by up to 2^-8.
  void sums(GateReport& report, const GateOptions& /*options*/) override {
    Recipe recipe = problem_.recipe;
    recipe.values = Values::kUnit;
    const Problem unit = make_problem(recipe);
    auto out = kernel_.run(unit);
    if (!out) return report.fail(out.error().message);
    const Dtype dtype = recipe.shape.dtype;
    const std::size_t d = unit.head_dim();
    const bool norms = recipe.shape.norm != HeadNorm::kNone;
    const float count = recipe.shape.norm == HeadNorm::kRms ? static_cast<float>(d) : 1.0F;
    for (std::size_t row = 0; row < recipe.rows.size(); ++row) {
      for (std::size_t head = 0; head < unit.heads(); ++head) {
        const std::uint16_t* const from = unit.head(row, head);
        double squares = 0;
        for (std::size_t i = 0; i < d; ++i) squares += std::pow(value_of(from[i], dtype), 2);
        const bool prepared = head < unit.q_heads() + unit.kv_heads() && norms;
        const float mean = static_cast<float>(squares) / count;
        const float factor = 1.0F / std::sqrt(mean + recipe.epsilon);
        for (std::size_t i = 0; i < d; ++i) {
          const float x = float_of(from[i], dtype);
          const float value = prepared ? x * factor : x;
          const std::uint16_t want = round_to(static_cast<double>(value), dtype);
          const std::size_t at = (row * unit.heads() + head) * d + i;
          ++report.comparisons;
          if ((*out)[at] == want) continue;
          report.fail(fmt::format("{}: {:#06x}, not {:#06x}", words_at(at), (*out)[at], want));
          return;
        }
      }
    }
  }

 private:
  std::string words_at(std::size_t element) const {
    const std::size_t d = problem_.head_dim();
    return fmt::format("row {} head {} dim {}", element / d / problem_.heads(),
                       element / d % problem_.heads(), element % d);
  }

  /// Holds a launch's rows against the same rows of the whole one.
  void compare(GateReport& report, const Result<Outputs>& got, const Outputs& whole,
               const std::vector<std::size_t>& rows, std::string_view part) const {
    if (!got) return report.fail(fmt::format("{}: {}", part, got.error().message));
    const std::size_t elems = problem_.heads() * problem_.head_dim();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      report.comparisons += elems;
      for (std::size_t e = 0; e < elems; ++e) {
        if ((*got)[i * elems + e] == whole[rows[i] * elems + e]) continue;
        report.fail(
            fmt::format("{}: other bits, first at {}", part, words_at(rows[i] * elems + e)));
        break;
      }
    }
  }

  Kernel kernel_;
  Problem problem_;
};

}  // namespace

Result<std::unique_ptr<Trial>> load_trial(const Bench& bench, const Recipe& recipe,
                                          const specializer::Variant& variant) {
  auto kernel = Kernel::load(bench, recipe.shape, variant);
  if (!kernel) return kernel.error();
  return std::unique_ptr<Trial>(std::make_unique<QkRowsTrial>(std::move(*kernel), recipe));
}

}  // namespace broach::contract::qk_rows
