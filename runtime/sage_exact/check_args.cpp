#include "runtime/sage_exact/check_args.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace broach::runtime::sage_exact {
namespace {

// 32-bit signed indices in the kernels: scales are H * ceil(N / 64), tokens a few tiles beyond N.
constexpr std::int32_t kMostTokens = 1 << 24;
constexpr std::int32_t kMostHeads = 65535;  // A grid's second extent.
constexpr std::uintptr_t kAlignment = 16;
constexpr std::int64_t kStrideUnit = 8;  // 16 bytes of bf16

Error refused(std::string message) {
  return Error{ErrorCode::kInvalidArgument, "sage_exact " + std::move(message), {}};
}

Result<void> check_pointer(std::string_view name, const void* pointer) {
  if (pointer == nullptr) return refused(fmt::format("{} is null", name));
  if (reinterpret_cast<std::uintptr_t>(pointer) % kAlignment != 0) {
    return refused(fmt::format("{} is not aligned to {} bytes", name, kAlignment));
  }
  return {};
}

Result<void> check_strides(std::string_view name, std::int64_t row, std::int64_t head) {
  const auto check = [&](std::string_view which, std::int64_t stride) -> Result<void> {
    if (stride >= 0 && stride % kStrideUnit == 0) return {};
    return refused(fmt::format("{}.{}={} is not served; multiples of {} from 0 are", name, which,
                               stride, kStrideUnit));
  };
  if (auto ok = check("row_stride", row); !ok) return ok;
  return check("head_stride", head);
}

Result<void> check_tensor(std::string_view name, const broach_sage_exact_tensor& tensor) {
  if (auto ok = check_pointer(name, tensor.data); !ok) return ok;
  return check_strides(name, tensor.row_stride, tensor.head_stride);
}

Result<void> check_out(const broach_sage_exact_args& args) {
  if (auto ok = check_pointer("out", args.out); !ok) return ok;
  return check_strides("out", args.out_row_stride, args.out_head_stride);
}

}  // namespace

Result<Sizes> checked_sizes(std::int32_t tokens, std::int32_t heads) {
  if (tokens < 1 || tokens > kMostTokens) {
    return refused(fmt::format("tokens={} is not served; 1..{} are", tokens, kMostTokens));
  }
  if (heads < 1 || heads > kMostHeads) {
    return refused(fmt::format("heads={} is not served; 1..{} are", heads, kMostHeads));
  }
  const Sizes sizes{static_cast<std::uint32_t>(tokens), static_cast<std::uint32_t>(heads)};
  if (sizes.heads * sizes.q_groups() > 0x7fffffffU) {
    return refused(fmt::format("tokens={} of heads={} has {} query scales; 2^31 - 1 are served",
                               tokens, heads, sizes.heads * sizes.q_groups()));
  }
  return sizes;
}

Result<Sizes> check_args(const broach_sage_exact_args& args, Needs needs,
                         std::uint64_t workspace_bytes) {
  auto sizes = checked_sizes(args.tokens, args.heads);
  if (!sizes) return sizes;
  Result<void> ok;
  const auto also = [&](bool wanted, auto check) {
    if (ok && wanted) ok = check();
  };
  also(needs == Needs::kQk || needs == Needs::kAll, [&] { return check_tensor("q", args.q); });
  also(needs == Needs::kK || needs == Needs::kQk || needs == Needs::kAll,
       [&] { return check_tensor("k", args.k); });
  also(needs == Needs::kV || needs == Needs::kAll, [&] { return check_tensor("v", args.v); });
  also(needs == Needs::kOut || needs == Needs::kAll, [&] { return check_out(args); });
  also(true, [&] { return check_pointer("workspace", args.workspace); });
  if (!ok) return ok.error();
  if (args.workspace_bytes < workspace_bytes) {
    return refused(fmt::format("workspace_bytes={} is too small; {} tokens of {} heads need {}",
                               args.workspace_bytes, args.tokens, args.heads, workspace_bytes));
  }
  return sizes;
}

Result<Sizes> check_prep_args(const broach_sage_exact_prep_args& args) {
  auto sizes = checked_sizes(args.tokens, args.heads);
  if (!sizes) return sizes;
  auto ok = check_tensor("in", args.in);
  if (ok) ok = check_pointer("out", args.out);
  if (ok) ok = check_strides("out", args.out_row_stride, args.out_head_stride);
  if (ok && args.weight != nullptr) ok = check_pointer("weight", args.weight);
  if (ok) ok = check_pointer("cosine", args.cosine);
  if (ok) ok = check_pointer("sine", args.sine);
  if (!ok) return ok.error();
  return sizes;
}

Result<bool> brings_quantised(const broach_sage_exact_quantised& quantised) {
  const std::pair<std::string_view, const void*> pointers[] = {{"q", quantised.q},
                                                               {"k", quantised.k},
                                                               {"v", quantised.v},
                                                               {"q_scale", quantised.q_scale},
                                                               {"k_scale", quantised.k_scale},
                                                               {"v_scale", quantised.v_scale}};
  const auto set = std::count_if(std::begin(pointers), std::end(pointers),
                                 [](const auto& each) { return each.second != nullptr; });
  if (set == 0) return false;
  for (const auto& [name, pointer] : pointers) {
    if (auto ok = check_pointer("quantised." + std::string(name), pointer); !ok) return ok.error();
  }
  return true;
}

}  // namespace broach::runtime::sage_exact
