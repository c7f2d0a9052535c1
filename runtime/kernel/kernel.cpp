#include "broach/kernel.hpp"

#include <utility>

#include "broach/runtime.hpp"
#include "runtime/compose.hpp"
#include "runtime/kernel/info.hpp"
#include "runtime/kernel/kernel_shape.hpp"
#include "runtime/kernel/own_launch.hpp"
#include "runtime/kernel/prepare.hpp"
#include "runtime/operator_request.hpp"
#include "runtime/runtime_state.hpp"
#include "specializer/own/load.hpp"
#include "specializer/own/one_function.hpp"

namespace broach {

using specializer::own::OwnFamily;

KernelFamily::KernelFamily(std::shared_ptr<const OwnFamily> family) noexcept
    : family_(std::move(family)) {}

Result<KernelFamily> KernelFamily::load(const std::string& path, const Options& options) {
  auto family = specializer::own::load_family(path, runtime::compilers_options(options));
  if (!family) return family.error();
  return KernelFamily(*std::move(family));
}

Result<KernelFamily> KernelFamily::from(std::string_view text, std::vector<KernelSource> sources,
                                        const Options& options) {
  std::vector<specializer::SourceFile> files;
  files.reserve(sources.size());
  for (KernelSource& source : sources) {
    files.push_back({std::move(source.name), std::move(source.bytes)});
  }
  auto family = OwnFamily::make("a family in memory", text, std::move(files),
                                {{}, runtime::compilers_options(options)});
  if (!family) return family.error();
  return KernelFamily(*std::move(family));
}

const std::string& KernelFamily::name() const noexcept { return family_->description().name; }

Result<KernelShape> KernelFamily::shape(std::span<const std::string> values) const {
  auto shape = specializer::parse_shape(*family_, values);
  if (!shape) return shape.error();
  if (auto ranged = family_->check_ranges(*shape); !ranged) return ranged.error();
  return KernelShape(std::make_shared<const runtime::KernelShapeState>(
      runtime::KernelShapeState{family_, *shape}));
}

Result<KernelShape> KernelFamily::shape(std::initializer_list<std::string> values) const {
  return shape(std::span(values.begin(), values.size()));
}

KernelShape::KernelShape(std::shared_ptr<const runtime::KernelShapeState> state) noexcept
    : state_(std::move(state)) {}

std::string KernelShape::text() const { return specializer::to_text(state_->shape); }

Kernel::Kernel(std::shared_ptr<const runtime::Operator> op) noexcept : op_(std::move(op)) {}

Result<void> Kernel::launch(std::string_view function, const KernelLaunch& launch,
                            std::span<const KernelArgument> arguments, void* stream) const {
  return op_->launch<runtime::OwnLaunch>().launch(function, launch, arguments, stream);
}

Result<void> Kernel::set_symbol(std::string_view name, std::span<const std::byte> bytes,
                                void* stream) const {
  return op_->launch<runtime::OwnLaunch>().module().set_symbol(name, bytes, stream);
}

KernelInfo Kernel::info() const { return runtime::info_of(*op_); }

Result<Kernel> Runtime::kernel(const KernelShape& shape, void* stream) {
  if (const auto* known = state_->operators.find(shape.state_->shape)) return Kernel(*known);
  const auto kept = state_->families.keep(*shape.state_);
  auto op = runtime::request(*state_, kept.shape, stream, runtime::OwnLaunch::make);
  if (op) return Kernel(*std::move(op));
  const bool is_cold =
      state_->first_use == FirstUse::kBackground && op.error().code == ErrorCode::kNotWarmed;
  return is_cold ? runtime::begin_in_background(*state_, kept) : op.error();
}

Result<std::optional<Kernel>> Runtime::try_kernel(const KernelShape& shape) {
  if (const auto* known = state_->operators.find(shape.state_->shape)) {
    return std::optional(Kernel(*known));
  }
  const auto kept = state_->families.keep(*shape.state_);
  if (const auto* known = state_->operators.find(kept.shape)) return std::optional(Kernel(*known));
  Error why = runtime::begin_in_background(*state_, kept);
  if (why.reason == Reason::kPending) return std::optional<Kernel>();
  return why;
}

Result<Kernel> Runtime::compile(std::string_view function, std::string_view source) {
  auto family = specializer::own::family_of_one(function, source, state_->toolkits);
  if (!family) return family.error();
  const auto kept = state_->families.keep(*family);
  return kernel(KernelShape(std::make_shared<const runtime::KernelShapeState>(
      runtime::KernelShapeState{kept, specializer::Shape(*kept)})));
}

void Runtime::wait_for_background() { state_->background.drain(); }

}  // namespace broach
