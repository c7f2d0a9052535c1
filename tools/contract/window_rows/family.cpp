#include "tools/contract/window_rows/family.hpp"

#include <iterator>
#include <utility>

#include "kernel_src/embedded.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tools/contract/window_rows/bounds.hpp"
#include "tools/contract/window_rows/controls.hpp"
#include "tools/contract/window_rows/limit_kernels.hpp"
#include "tools/contract/window_rows/runner.hpp"
#include "tools/contract/window_rows/trial.hpp"
#include "tools/contract/window_rows/variants.hpp"

namespace broach {
extern const std::span<const EmbeddedFile> kWindowRowsDigests;
}  // namespace broach

namespace broach::contract::window_rows {
namespace {

using specializer::Target;

class WindowRowsCase final : public Case {
 public:
  WindowRowsCase(CaseSpec spec, specializer::Variant variant)
      : Case(spec.name), spec_(std::move(spec)), variant_(std::move(variant)) {}

  const CaseSpec& spec() const noexcept { return spec_; }

  std::string shape_json() const override { return specializer::to_json(spec_.recipe.shape); }

  std::string_view pinned_digest() const override { return pinned_digests().of(name()); }

  // The digests are of sm_90's MMA step: of two k8 steps, only what uses no step has these bits.
  bool has_pinned_bits(const Target& target) const override {
    if (target.mma_step == specializer::MmaStep::kOneK16) return true;
    const auto served = specializer::serve(spec_.recipe.shape, target);
    return served &&
           specializer::typed_of<WindowRowsShape>(served->shape()).arith == Arith::kChunk256;
  }

  Result<specializer::Plan> plan(const Target& target) const override {
    return specializer::plan(spec_.recipe.shape, target, variant_);
  }

  std::vector<specializer::Plan> twins(const Target& target) const override {
    std::vector<specializer::Plan> plans;
    const auto add = [&](const WindowRowsShape& shape, const specializer::Variant& variant) {
      // What the target does not serve is a note of the gate's.
      auto plan = specializer::plan(shape, target, variant);
      if (plan) plans.push_back(std::move(*plan));
    };
    for (const ShapeVariant& variant : variants_of(spec_)) add(variant.shape, variant.variant);
    if (!has_other_form(spec_.twins)) return plans;
    if (const auto other = other_form(spec_.recipe.shape)) add(*other, {});
    return plans;
  }

  Result<std::unique_ptr<Trial>> load(const Bench& bench) const override {
    return load_trial(bench, spec_, variant_);
  }

 private:
  CaseSpec spec_;
  specializer::Variant variant_;
};

constexpr std::int32_t kQuickBatch = 17;

std::vector<CaseSpec> specs_of(const ArithForm& served, CaseSize size) {
  const bool prefill = served.form == Form::kPrefill;
  std::vector<CaseSpec> specs =
      prefill ? ragged_prefills(served.arith) : ragged_decodes(served.arith);
  std::vector<CaseSpec> more =
      prefill ? served_prefills(size, served.arith) : served_decodes(size, served.arith);
  specs.insert(specs.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  return specs;
}

class WindowRowsFamily final : public ContractFamily {
 public:
  std::string_view name() const override { return "window_rows"; }

  std::vector<std::shared_ptr<const Case>> cases(const Target& target, Sweep sweep) const override {
    const bool host = target.vendor == specializer::Vendor::kHost;
    std::vector<std::shared_ptr<const Case>> cases;
    for (const ArithForm& served : kArithForms) {
      for (CaseSpec& one : specs_of(served, host ? CaseSize::kCut : CaseSize::kFull)) {
        if (sweep == Sweep::kQuick) {
          if (one.sweep == Sweep::kWhole) continue;
          one.twins = one.quick_twins;
          if (one.twins != Twins::kAll) one.largest_batch = kQuickBatch;
        }
        if (!specializer::serve(one.recipe.shape, target)) continue;
        cases.push_back(case_of(std::move(one)));
      }
    }
    return cases;
  }

  std::vector<Control> controls(const Target& target) const override {
    std::vector<Control> served;
    for (const PlantedFault& fault : planted_faults()) {
      CaseSpec tried = control_case(fault);
      if (!specializer::serve(tried.recipe.shape, target)) continue;
      served.push_back(control_of(fault));
    }
    return served;
  }

  std::vector<LimitKernel> limit_kernels(LimitDepth depth) const override {
    return window_rows::limit_kernels(depth);
  }

  std::vector<Finding> findings() const override { return known_findings(); }

  std::vector<ListedBound> bounds() const override { return listed_bounds(); }

  Result<std::unique_ptr<const Runner>> runner(const RunRequest& request) const override {
    return runner_of(request);
  }
};

}  // namespace

const ContractFamily& family() {
  static const WindowRowsFamily kFamily;
  return kFamily;
}

std::shared_ptr<const Case> case_of(CaseSpec spec, specializer::Variant variant) {
  return std::make_shared<WindowRowsCase>(std::move(spec), std::move(variant));
}

const CaseSpec* spec_of(const Case& one) noexcept {
  const auto* const own = dynamic_cast<const WindowRowsCase*>(&one);
  return own == nullptr ? nullptr : &own->spec();
}

const PinnedDigests& pinned_digests() {
  static const PinnedDigests kDigests(kWindowRowsDigests.front().bytes);
  return kDigests;
}

}  // namespace broach::contract::window_rows
