#include "tools/contract/window_rows/trial.hpp"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "tools/contract/window_rows/gates.hpp"

namespace broach::contract::window_rows {
namespace {

class WindowRowsTrial final : public Trial {
 public:
  WindowRowsTrial(Kernel kernel, CaseSpec spec)
      : kernel_(std::move(kernel)), spec_(std::move(spec)) {}

  const cache::Key& key() const noexcept override { return kernel_.key(); }

  Result<std::vector<std::byte>> run(Poison poison) override {
    if (auto ready = upload(); !ready) return ready.error();
    auto out = uploaded_->run(kernel_.decoder(), poison);
    if (!out) return out.error();
    return packed(problem_, *out);
  }

  std::string place_of(std::size_t byte) const override {
    const auto dims = static_cast<std::size_t>(problem_.head_dim());
    const auto heads = static_cast<std::size_t>(problem_.heads());
    const std::size_t element = byte / sizeof(std::uint16_t);
    return fmt::format("row {} head {} dim {}", element / dims / heads, element / dims % heads,
                       element % dims);
  }

  void nonfinite(GateReport& report, const GateOptions& options) override {
    report = gate_nonfinite({&kernel_, &spec_, options});
  }
  void shapes(GateReport& report, const GateOptions& options) override {
    report = gate_shapes({&kernel_, &spec_, options});
  }
  void sums(GateReport& report, const GateOptions& options) override {
    report = gate_sums({&kernel_, &spec_, options});
  }

 private:
  Result<void> upload() {
    if (uploaded_) return {};
    auto problem = make_problem(spec_.recipe);
    if (!problem) return problem.error();
    auto uploaded = DeviceProblem::upload(*kernel_.bench().device, *problem);
    if (!uploaded) return uploaded.error();
    problem_ = std::move(*problem);
    uploaded_.emplace(std::move(*uploaded));
    return {};
  }

  Kernel kernel_;
  CaseSpec spec_;
  Problem problem_;
  std::optional<DeviceProblem> uploaded_;
};

}  // namespace

Result<std::unique_ptr<Trial>> load_trial(const Bench& bench, const CaseSpec& spec,
                                          const specializer::Variant& variant) {
  auto kernel = Kernel::load(bench, spec.recipe.shape, variant);
  if (!kernel) return kernel.error();
  return std::unique_ptr<Trial>(std::make_unique<WindowRowsTrial>(std::move(*kernel), spec));
}

}  // namespace broach::contract::window_rows
