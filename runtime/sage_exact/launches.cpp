#include "runtime/sage_exact/launches.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "kernel_src/sage_exact/params.h"

namespace broach::runtime::sage_exact {
namespace {

constexpr std::pair<std::string_view, Step> kNames[] = {
    {"broach_sage_exact_prep", Step::kPrep},
    {"broach_sage_exact_k_mean_part", Step::kMeanPart},
    {"broach_sage_exact_k_mean", Step::kMean},
    {"broach_sage_exact_q_int8", Step::kQInt8},
    {"broach_sage_exact_k_int8", Step::kKInt8},
    {"broach_sage_exact_v_range", Step::kVRange},
    {"broach_sage_exact_v_scale", Step::kVScale},
    {"broach_sage_exact_v_fp8", Step::kVFp8},
    {"broach_sage_exact_pack", Step::kPack},
    {"broach_sage_exact_attention", Step::kAttention},
    {"broach_sage_exact_attention_warpgroup", Step::kAttention},
};

const unsigned short* bits_of(const broach_sage_exact_tensor& tensor) {
  return static_cast<const unsigned short*>(tensor.data);
}

long long head_stride_of(const broach_sage_exact_tensor& tensor) {
  return tensor.head_stride == 0 ? static_cast<long long>(kHeadDim) : tensor.head_stride;
}

BroachSageExactInt8 int8_params(const broach_sage_exact_tensor& in, const Sizes& sizes,
                                std::uint64_t groups) {
  BroachSageExactInt8 params{};
  params.in = bits_of(in);
  params.row_stride = in.row_stride;
  params.head_stride = head_stride_of(in);
  params.tokens = static_cast<int>(sizes.tokens);
  params.heads = static_cast<int>(sizes.heads);
  params.groups = static_cast<int>(groups);
  return params;
}

}  // namespace

Result<void> Functions::add(const specializer::Plan& plan, Module& module) {
  for (const specializer::KernelEntry& entry : plan.entries) {
    const auto* const named = std::find_if(std::begin(kNames), std::end(kNames), [&](auto& each) {
      return each.first == entry.function;
    });
    if (named == std::end(kNames)) {
      return Error{ErrorCode::kInternal,
                   fmt::format("sage_exact has no step for the function {}", entry.function),
                   {}};
    }
    auto function = module.function(entry.function);
    if (!function) return function.error();
    stages_[static_cast<std::size_t>(named->second)] = {
        *function, entry.block_threads, entry.dynamic_shared_bytes, entry.block_rows};
  }
  return {};
}

Result<void> Functions::launch(Step step, std::uint64_t x, std::uint64_t y, const void* params,
                               std::size_t bytes, Stream stream) const {
  const Stage& of_step = stage(step);
  if (of_step.function == nullptr) {
    const auto* const named = std::find_if(std::begin(kNames), std::end(kNames),
                                           [&](auto& each) { return each.second == step; });
    return Error{ErrorCode::kInternal,
                 fmt::format("a launch of {} without the plan that has it",
                             named == std::end(kNames) ? "a step" : named->first),
                 {}};
  }
  LaunchConfig config;
  config.grid[0] = static_cast<std::uint32_t>(x);
  config.grid[1] = static_cast<std::uint32_t>(y);
  config.block[0] = of_step.block_threads;
  config.dynamic_shared_bytes = of_step.dynamic_shared_bytes;
  config.params = params;
  config.params_bytes = bytes;
  config.stream = stream;
  return of_step.function->launch(config);
}

Result<void> launch_prep(const Functions& functions, const broach_sage_exact_prep_args& args,
                         const Sizes& sizes, Stream stream) {
  BroachSageExactPrep params{};
  params.in = bits_of(args.in);
  params.out = static_cast<unsigned short*>(args.out);
  params.weight = static_cast<const unsigned short*>(args.weight);
  params.cosine = static_cast<const unsigned short*>(args.cosine);
  params.sine = static_cast<const unsigned short*>(args.sine);
  params.in_row_stride = args.in.row_stride;
  params.in_head_stride = head_stride_of(args.in);
  params.out_row_stride = args.out_row_stride;
  params.out_head_stride =
      args.out_head_stride == 0 ? static_cast<long long>(kHeadDim) : args.out_head_stride;
  params.tokens = static_cast<int>(sizes.tokens);
  params.heads = static_cast<int>(sizes.heads);
  constexpr std::uint64_t kBlockHeads = 8;  // A warp each.
  const std::uint64_t count = std::uint64_t{sizes.tokens} * sizes.heads;
  return functions.launch(Step::kPrep, (count + kBlockHeads - 1) / kBlockHeads, 1, params, stream);
}

Result<void> launch_k_mean(const Functions& functions, const broach_sage_exact_tensor& k,
                           const Sizes& sizes, const MeanGeometry& geometry, const Tensors& tensors,
                           Stream stream) {
  BroachSageExactMean params{};
  params.k = bits_of(k);
  params.partial = tensors.mean_partial;
  params.mean = tensors.k_mean;
  params.row_stride = k.row_stride;
  params.head_stride = head_stride_of(k);
  params.tokens = static_cast<int>(sizes.tokens);
  params.heads = static_cast<int>(sizes.heads);
  params.lanes = static_cast<int>(geometry.lanes);
  params.blocks = static_cast<int>(geometry.blocks);
  params.step = static_cast<int>(geometry.step);
  params.factor = geometry.factor;
  auto parts = functions.launch(Step::kMeanPart, sizes.heads, geometry.blocks, params, stream);
  if (!parts) return parts;
  return functions.launch(Step::kMean, sizes.heads, 1, params, stream);
}

Result<void> launch_qk_int8(const Functions& functions, const broach_sage_exact_tensor& q,
                            const broach_sage_exact_tensor& k, const Sizes& sizes,
                            const MeanGeometry& geometry, const Tensors& tensors, Stream stream) {
  BroachSageExactInt8 of_q = int8_params(q, sizes, sizes.q_groups());
  of_q.out = tensors.quantised.q;
  of_q.scale = tensors.quantised.q_scale;
  auto done = functions.launch(Step::kQInt8, sizes.q_groups(), sizes.heads, of_q, stream);
  if (!done) return done;
  BroachSageExactInt8 of_k = int8_params(k, sizes, sizes.tiles());
  of_k.mean = tensors.k_mean;
  of_k.unrounded = tensors.mean_partial;
  of_k.mean_blocks = static_cast<int>(geometry.blocks);
  of_k.out = tensors.quantised.k;
  of_k.scale = tensors.quantised.k_scale;
  return functions.launch(Step::kKInt8, sizes.tiles(), sizes.heads, of_k, stream);
}

Result<void> launch_v_fp8(const Functions& functions, const broach_sage_exact_tensor& v,
                          const Sizes& sizes, const Tensors& tensors, Stream stream) {
  BroachSageExactFp8 params{};
  params.v = bits_of(v);
  params.range = tensors.v_range;
  params.scale = tensors.quantised.v_scale;
  params.out = tensors.quantised.v;
  params.transposed = tensors.v_t_bf16;
  params.row_stride = v.row_stride;
  params.head_stride = head_stride_of(v);
  params.tokens = static_cast<int>(sizes.tokens);
  params.heads = static_cast<int>(sizes.heads);
  params.chunks = static_cast<int>((sizes.tokens + kRangeTokens - 1) / kRangeTokens);
  params.chunk_tokens = static_cast<int>(kRangeTokens);
  auto done = functions.launch(Step::kVRange, static_cast<std::uint64_t>(params.chunks),
                               sizes.heads, params, stream);
  if (!done) return done;
  done = functions.launch(Step::kVScale, sizes.heads, 1, params, stream);
  if (!done) return done;
  return functions.launch(Step::kVFp8, sizes.tiles(), sizes.heads, params, stream);
}

Result<void> launch_attention(const Functions& functions,
                              const broach_sage_exact_quantised& quantised, void* packed,
                              const Output& out, const Sizes& sizes, Stream stream) {
  BroachSageExactAttention params{};
  params.q = quantised.q;
  params.k = quantised.k;
  params.v = quantised.v;
  params.q_scale = quantised.q_scale;
  params.k_scale = quantised.k_scale;
  params.v_scale = quantised.v_scale;
  params.out = out.data;
  params.softmax_max = out.softmax_max;
  params.softmax_sum = out.softmax_sum;
  params.tiles = packed;
  params.out_row_stride = out.row_stride;
  params.out_head_stride = out.head_stride;
  params.tokens = static_cast<int>(sizes.tokens);
  params.heads = static_cast<int>(sizes.heads);
  if (functions.has(Step::kPack)) {
    auto done = functions.launch(Step::kPack, sizes.tiles(), sizes.heads, params, stream);
    if (!done) return done;
  }
  const std::uint32_t rows = functions.block_rows();
  return functions.launch(Step::kAttention, (sizes.tokens + rows - 1) / rows, sizes.heads, params,
                          stream);
}

}  // namespace broach::runtime::sage_exact
