#include "tools/contract/sage_exact/family.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "specializer/sage_exact/kernel_source.hpp"
#include "specializer/sage_exact/shape.hpp"
#include "tools/contract/harness/golden_family.hpp"
#include "tools/contract/sage_exact/golden.hpp"
#include "tools/contract/sage_exact/kernels.hpp"
#include "tools/contract/sage_exact/problem.hpp"
#include "tools/contract/sage_exact/trial.hpp"

namespace broach::contract::sage_exact {
namespace {

using specializer::Target;

constexpr std::size_t kQuickElements = 128 * 512;  // Tokens x heads x dims of a quick sweep's case.
constexpr std::size_t kHostTokens = 1024;

SageExactShape shape_of(SageBoundary boundary) {
  SageExactShape shape;
  shape.boundary = boundary;
  return shape;
}

class SageExactCase final : public Case {
 public:
  SageExactCase(GoldenCase golden, std::string control)
      : Case("sage_exact " + golden.name),
        golden_(std::move(golden)),
        control_(std::move(control)) {}

  std::string shape_json() const override {
    return specializer::to_json(shape_of(SageBoundary::kAttention));
  }
  // Digests are gate 3's own, one a boundary tensor.
  std::string_view pinned_digest() const override { return {}; }
  bool has_pinned_bits(const Target& target) const override { return has_golden_bytes(target); }

  Result<specializer::Plan> plan(const Target& target) const override {
    return plan_of(SageBoundary::kAttention, target);
  }

  std::vector<specializer::Plan> twins(const Target& target) const override {
    std::vector<specializer::Plan> plans;
    for (const SageBoundary boundary : kBoundaries) {
      if (boundary == SageBoundary::kAttention) continue;
      auto plan = plan_of(boundary, target);
      if (plan) plans.push_back(std::move(*plan));
    }
    return plans;
  }

  Result<std::unique_ptr<Trial>> load(const Bench& bench) const override {
    return load_trial(bench, golden_, control_);
  }

 private:
  Result<specializer::Plan> plan_of(SageBoundary boundary, const Target& target) const {
    const auto controls = specializer::sage_exact::controls_of(boundary);
    const bool has = std::find(controls.begin(), controls.end(), control_) != controls.end();
    return specializer::plan(shape_of(boundary), target,
                             {.control = has ? control_ : "", .generic = Switch::kOff});
  }

  GoldenCase golden_;
  std::string control_;
};

struct PlantedFault {
  std::string_view name;
  std::string_view tried;  ///< The least golden case that it changes.
  std::string_view words;
  std::string_view why;
};

constexpr PlantedFault kFaults[] = {
    {"mean_left_out", "n50_h1", "k is quantised without its mean",
     "every channel of k is moved by an offset of its own"},
    {"mean_unrounded", "n50_h1", "the mean is subtracted before it is rounded to bf16",
     "the scales of k carry the mean's lost bits"},
    {"pv_order_swapped", "n50_h1", "the high keys of a step enter P x V before the low ones",
     "the f16 accumulator rounds between them"},
    {"rescale_unfused", "n200_h2", "multiply and add where the rescale is one fma",
     "two roundings of o and of the denominator differ from one"},
    {"ieee_division", "n200_h2", "division where the reference multiplies by a reciprocal",
     "the approximate reciprocal is an ulp off in an eighth of its arguments"},
    {"tail_moved", "n200_h2", "the last two tiles' placement of the scales begins a tile early",
     "the product of score and scale rounds once more"},
    {"tail_unmasked", "n50_h1", "keys beyond the last token are not masked",
     "their scores of 0 join the denominator"},
};

const std::vector<GoldenCase>& cases_of_file() {
  static const std::vector<GoldenCase> kCases = [] {
    auto cases = golden_cases();
    return cases ? *std::move(cases) : std::vector<GoldenCase>();
  }();
  return kCases;
}

// AMD's chips compute each step of P x V, and each exponential, as a model on integers.
constexpr Finding kKnown[] = {
    {"broach_sage_exact_attention",
     "gfx",
     "up to 256 bytes in scratch, and scalar registers in lanes of vector registers",
     "a lane's 64 outputs, 32 scores and 32 P lie beside the products, exponents and signs of a "
     "modelled step; some compilers keep a few of the 256 that a lane can address in scratch",
     {256, 64, 64}},
};

class SageExactFamily final : public ContractFamily, public GoldenFamily {
 public:
  std::string_view name() const override { return "sage_exact"; }

  std::vector<std::shared_ptr<const Case>> cases(const Target& target, Sweep sweep) const override {
    const bool host = target.vendor == specializer::Vendor::kHost;
    std::vector<std::shared_ptr<const Case>> cases;
    for (const GoldenCase& golden : cases_of_file()) {
      if (host && golden.rule.tokens > kHostTokens) continue;
      const std::size_t elements = golden.rule.tokens * golden.rule.heads * kHeadDim;
      if (sweep == Sweep::kQuick && elements > kQuickElements) continue;
      cases.push_back(std::make_shared<SageExactCase>(golden, ""));
    }
    return cases;
  }

  std::vector<Control> controls(const Target& target) const override {
    std::vector<Control> controls;
    // Elsewhere no bytes exist to see them by.
    if (!has_golden_bytes(target)) return controls;
    for (const PlantedFault& fault : kFaults) {
      for (const GoldenCase& golden : cases_of_file()) {
        if (golden.name != fault.tried) continue;
        controls.push_back({fault.name, "sage_exact", fault.words, Gate::kShapes, fault.why,
                            std::make_shared<SageExactCase>(golden, std::string(fault.name))});
      }
    }
    return controls;
  }

  std::vector<LimitKernel> limit_kernels(LimitDepth depth) const override {
    std::vector<LimitKernel> kernels;
    for (const SageBoundary boundary : kBoundaries) {
      kernels.push_back(limit_kernel(shape_of(boundary)));
    }
    if (depth != LimitDepth::kOneOfEach) {
      SageExactShape plain = shape_of(SageBoundary::kAttention);
      plain.schedule = SageSchedule::kPlain;
      kernels.push_back(limit_kernel(plain));
    }
    return kernels;
  }

  std::vector<Finding> findings() const override { return {std::begin(kKnown), std::end(kKnown)}; }

  std::vector<ListedBound> bounds() const override { return {}; }

  Result<std::vector<GoldenRow>> golden(
      const Bench& bench,
      const std::function<void(std::span<const GoldenRow>)>& done) const override {
    const Target& target = bench.device->target();
    if (!has_golden_bytes(target)) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("no golden bytes exist for {}: they are sm_90's, which the host "
                               "target has too",
                               target.name),
                   ""};
    }
    auto kernels = Kernels::load(bench, SageSchedule::kDefault);
    if (!kernels) return kernels.error();
    const bool host = target.vendor == specializer::Vendor::kHost;
    std::vector<GoldenRow> rows;
    for (const GoldenCase& golden : cases_of_file()) {
      if (host && golden.rule.tokens > kHostTokens) continue;
      auto problem =
          Problem::make(*bench.device, static_cast<std::uint32_t>(golden.rule.tokens),
                        static_cast<std::uint32_t>(golden.rule.heads), make_input(golden));
      if (!problem) return problem.error();
      if (auto ran = problem->run(*kernels); !ran) return ran.error();
      auto digests = problem->digests();
      if (!digests) return digests.error();
      const std::size_t first = rows.size();
      for (const auto& [tensor, digest] : *digests) {
        rows.push_back({golden.name, tensor, digest, std::string(golden.digest(tensor))});
      }
      if (done) done(std::span(rows).subspan(first));
    }
    return rows;
  }

 private:
  static LimitKernel limit_kernel(const SageExactShape& shape) {
    LimitKernel kernel;
    kernel.findings.assign(std::begin(kKnown), std::end(kKnown));
    kernel.kind = fmt::format("sage_exact {}", specializer::name_of(shape.boundary));
    if (shape.schedule != SageSchedule::kDefault) {
      kernel.kind += fmt::format(" {}", specializer::name_of(shape.schedule));
    }
    kernel.plan = [shape](const Target& target) -> Result<std::optional<specializer::Plan>> {
      const auto served = specializer::serve(shape, target);
      if (!served) return std::optional<specializer::Plan>();
      auto plan = specializer::plan(*served, {});
      if (!plan) return plan.error();
      return std::optional(std::move(*plan));
    };
    return kernel;
  }
};

}  // namespace

const ContractFamily& family() {
  static const SageExactFamily kFamily;
  return kFamily;
}

}  // namespace broach::contract::sage_exact
