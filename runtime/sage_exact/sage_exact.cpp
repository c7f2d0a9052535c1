#include <utility>

#include "runtime/operator.hpp"
#include "runtime/operator_request.hpp"
#include "runtime/sage_exact/check_args.hpp"
#include "runtime/sage_exact/launches.hpp"
#include "runtime/sage_exact/operators.hpp"
#include "specializer/sage_exact/shape.hpp"

namespace broach {
namespace runtime {
namespace {

/// The functions of one boundary's plan.
class SageLaunch final : public Launch {
 public:
  SageLaunch(const SageExactShape& shape, const sage_exact::Functions& functions)
      : shape_(shape), functions_(functions) {}

  const SageExactShape& shape() const noexcept { return shape_; }
  const sage_exact::Functions& functions() const noexcept { return functions_; }

 private:
  SageExactShape shape_;
  sage_exact::Functions functions_;
};

Result<std::unique_ptr<const Launch>> make_launch(const LaunchParts& parts) {
  sage_exact::Functions functions;
  if (auto added = functions.add(parts.plan, parts.module); !added) return added.error();
  return std::unique_ptr<const Launch>(
      std::make_unique<SageLaunch>(specializer::typed_of<SageExactShape>(parts.served), functions));
}

using SharedOperator = std::shared_ptr<const Operator>;

}  // namespace
}  // namespace runtime

/// One operator a boundary.
struct SageExact::Operators {
  runtime::SharedOperator prep, k_mean, qk_int8, v_fp8, attention;

  const runtime::sage_exact::Functions& of(const runtime::SharedOperator& op) const {
    return op->launch<runtime::SageLaunch>().functions();
  }
  runtime::sage_exact::MeanGeometry geometry(const runtime::sage_exact::Sizes& sizes) const {
    const SageExactShape& shape = k_mean->launch<runtime::SageLaunch>().shape();
    return runtime::sage_exact::mean_geometry(
        sizes.tokens, sizes.heads, {shape.multiprocessors, shape.threads_per_multiprocessor});
  }
  runtime::sage_exact::WorkspacePlan workspace(const runtime::sage_exact::Sizes& sizes) const {
    return runtime::sage_exact::plan_workspace(sizes, geometry(sizes), packing());
  }
  // The shape's and not the serving kernel's, so that a promotion changes no size.
  runtime::sage_exact::Packing packing() const {
    return attention->launch<runtime::SageLaunch>().shape().schedule == SageSchedule::kWarpgroup
               ? runtime::sage_exact::Packing::kTiles
               : runtime::sage_exact::Packing::kNone;
  }
};

namespace {

namespace sage = runtime::sage_exact;

/// A checked call: its sizes and where its tensors lie.
struct Call {
  sage::Sizes sizes;
  sage::MeanGeometry geometry;
  sage::Tensors tensors;
};

Result<Call> checked(const SageExact::Operators& operators, const broach_sage_exact_args& args,
                     sage::Needs needs) {
  auto sizes = sage::checked_sizes(args.tokens, args.heads);
  if (!sizes) return sizes.error();
  const sage::WorkspacePlan plan = operators.workspace(*sizes);
  auto sound = sage::check_args(args, needs, plan.bytes);
  if (!sound) return sound.error();
  return Call{*sizes, operators.geometry(*sizes),
              sage::tensors_in(args.workspace, plan, operators.packing())};
}

Result<void> attend(const SageExact::Operators& operators, const broach_sage_exact_args& args,
                    const Call& call, const broach_sage_exact_quantised& quantised, void* stream) {
  sage::Output out;
  out.data = static_cast<std::uint16_t*>(args.out);
  out.row_stride = args.out_row_stride;
  out.head_stride = args.out_head_stride == 0 ? sage::kHeadDim : args.out_head_stride;
  return sage::launch_attention(operators.of(operators.attention), quantised, call.tensors.packed,
                                out, call.sizes, stream);
}

}  // namespace

SageExact::SageExact(std::shared_ptr<const Operators> operators) noexcept
    : operators_(std::move(operators)) {}

std::size_t SageExact::workspace_bytes(std::int32_t tokens, std::int32_t heads) const noexcept {
  auto sizes = sage::checked_sizes(tokens, heads);
  return sizes ? static_cast<std::size_t>(operators_->workspace(*sizes).bytes) : 0;
}

Result<broach_sage_exact_tensors> SageExact::places(const broach_sage_exact_args& args) const {
  // Pointers are only reckoned with: none of the inputs need be there.
  auto sizes = sage::checked_sizes(args.tokens, args.heads);
  if (!sizes) return sizes.error();
  const sage::Tensors tensors =
      sage::tensors_in(args.workspace, operators_->workspace(*sizes), operators_->packing());
  return broach_sage_exact_tensors{tensors.k_mean, tensors.quantised};
}

Result<void> SageExact::k_mean(const broach_sage_exact_args& args, void* stream) const {
  auto call = checked(*operators_, args, sage::Needs::kK);
  if (!call) return call.error();
  return sage::launch_k_mean(operators_->of(operators_->k_mean), args.k, call->sizes,
                             call->geometry, call->tensors, stream);
}

Result<void> SageExact::qk_int8(const broach_sage_exact_args& args, void* stream) const {
  auto call = checked(*operators_, args, sage::Needs::kQk);
  if (!call) return call.error();
  return sage::launch_qk_int8(operators_->of(operators_->qk_int8), args.q, args.k, call->sizes,
                              call->geometry, call->tensors, stream);
}

Result<void> SageExact::v_fp8(const broach_sage_exact_args& args, void* stream) const {
  auto call = checked(*operators_, args, sage::Needs::kV);
  if (!call) return call.error();
  return sage::launch_v_fp8(operators_->of(operators_->v_fp8), args.v, call->sizes, call->tensors,
                            stream);
}

Result<void> SageExact::attention(const broach_sage_exact_args& args, void* stream) const {
  auto call = checked(*operators_, args, sage::Needs::kOut);
  if (!call) return call.error();
  auto own = sage::brings_quantised(args.quantised);
  if (!own) return own.error();
  return attend(*operators_, args, *call, *own ? args.quantised : call->tensors.quantised, stream);
}

Result<void> SageExact::run(const broach_sage_exact_args& args, void* stream) const {
  auto call = checked(*operators_, args, sage::Needs::kAll);
  if (!call) return call.error();
  const Operators& ops = *operators_;
  auto done = sage::launch_k_mean(ops.of(ops.k_mean), args.k, call->sizes, call->geometry,
                                  call->tensors, stream);
  if (done) {
    done = sage::launch_qk_int8(ops.of(ops.qk_int8), args.q, args.k, call->sizes, call->geometry,
                                call->tensors, stream);
  }
  if (done) {
    done = sage::launch_v_fp8(ops.of(ops.v_fp8), args.v, call->sizes, call->tensors, stream);
  }
  if (!done) return done;
  return attend(ops, args, *call, call->tensors.quantised, stream);
}

Result<void> SageExact::prep(const broach_sage_exact_prep_args& args, void* stream) const {
  auto sizes = sage::check_prep_args(args);
  if (!sizes) return sizes.error();
  return sage::launch_prep(operators_->of(operators_->prep), args, *sizes, stream);
}

SageExactShape SageExact::shape() const noexcept {
  SageExactShape shape = operators_->attention->launch<runtime::SageLaunch>().shape();
  const SageExactShape& of_mean = operators_->k_mean->launch<runtime::SageLaunch>().shape();
  shape.multiprocessors = of_mean.multiprocessors;
  shape.threads_per_multiprocessor = of_mean.threads_per_multiprocessor;
  return shape;
}

Result<SageExact> sage_exact(Runtime& runtime, const SageExactShape& shape, void* stream) {
  return runtime::sage_exact_operator(runtime.state(), shape, stream);
}

namespace runtime {

Result<SageExact> sage_exact_operator(Runtime::State& state, const SageExactShape& shape,
                                      Stream stream) {
  auto operators = std::make_shared<SageExact::Operators>();
  const std::pair<SageBoundary, SharedOperator*> wanted[] = {
      {SageBoundary::kPrep, &operators->prep},
      {SageBoundary::kKMean, &operators->k_mean},
      {SageBoundary::kQkInt8, &operators->qk_int8},
      {SageBoundary::kVFp8, &operators->v_fp8},
      {SageBoundary::kAttention, &operators->attention}};
  for (const auto& [boundary, into] : wanted) {
    SageExactShape of_boundary = shape;
    of_boundary.boundary = boundary;
    auto op = request(state, specializer::shape_of(of_boundary), stream, make_launch);
    if (!op) return op.error();
    *into = *std::move(op);
  }
  return SageExact(std::move(operators));
}

}  // namespace runtime
}  // namespace broach
