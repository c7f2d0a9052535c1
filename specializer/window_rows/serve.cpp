#include "specializer/window_rows/serve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "specializer/window_rows/shape.hpp"

namespace broach::specializer::window_rows {
namespace {

constexpr std::uint32_t kHeadDims[] = {64, 80, 96, 112, 128, 192, 256, 512};
constexpr std::uint32_t kMaxRatio = 32;
constexpr std::uint32_t kMaxWindow = 1U << 20;
// Index arithmetic in the kernels is 32-bit and signed; a ring of 2^30 leaves position + ring room.
constexpr std::uint32_t kMaxRing = 1U << 30;
constexpr std::uint32_t kMaxPage = 1U << 16;

Error refused(ErrorCode code, std::string message) {
  return Error{code, "window_rows " + std::move(message), ""};
}

Result<void> check_layout(const WindowRowsShape& shape) {
  const std::uint32_t length = shape.kv_layout.length;
  switch (shape.kv_layout.kind) {
    case KvLayoutKind::kLinear:
      if (length == 0) return {};
      return refused(ErrorCode::kInvalidArgument,
                     fmt::format("kv_layout=linear takes no length; this shape has {}", length));
    case KvLayoutKind::kRing:
      if (shape.window == 0) {
        return refused(
            ErrorCode::kInvalidArgument,
            fmt::format("kv_layout=ring({}) needs a window of 1..{}: window=0 sees every earlier "
                        "key and a ring forgets them; kv_layout=linear or paged(64) works",
                        length, std::max(length, 1U)));
      }
      if (length < shape.window || length > kMaxRing) {
        return refused(
            ErrorCode::kInvalidArgument,
            fmt::format("window={} does not fit kv_layout=ring({}): the ring needs {}..{} "
                        "positions (the window, and for a prefill its chunk's rows - 1 more)",
                        shape.window, length, shape.window, kMaxRing));
      }
      return {};
    case KvLayoutKind::kPaged:
      if (length >= 1 && length <= kMaxPage) return {};
      return refused(
          ErrorCode::kInvalidArgument,
          fmt::format("kv_layout=paged({}) needs a page of 1..{} positions", length, kMaxPage));
  }
  return refused(ErrorCode::kInvalidArgument, "kv_layout is not one of linear, ring, paged");
}

Result<void> check_form(const WindowRowsShape& shape) {
  // chunk256 keeps P in fp32 throughout; tile64's decode gives the prefill's bits, p32 included.
  if (shape.form == Form::kDecode && shape.p32 == Switch::kOn && !is_tile64(shape.arith) &&
      shape.arith != Arith::kDefault) {
    return refused(ErrorCode::kInvalidArgument,
                   "p32=on applies to form=prefill and to form=decode arith=tile64 or "
                   "tile64_ex2; other decodes work with p32=off");
  }
  if (shape.form == Form::kPrefill && shape.arith == Arith::kChunk256) {
    return refused(
        ErrorCode::kInvalidArgument,
        "arith=chunk256 is a decode arithmetic; form=prefill needs tile64, tile64_ex2 or "
        "mma32");
  }
  if (shape.form == Form::kDecode && shape.arith == Arith::kMma32) {
    return refused(ErrorCode::kInvalidArgument,
                   "arith=mma32 is a prefill arithmetic; form=decode needs chunk256, tile64 or "
                   "tile64_ex2");
  }
  return {};
}

// One row a kernel that exists: add a row when one lands, and nothing else.
struct Kernel {
  Form form;
  Arith arith;
  KvLayoutKind layout;
};

constexpr Kernel kKernels[] = {
    {Form::kDecode, Arith::kChunk256, KvLayoutKind::kLinear},
    {Form::kDecode, Arith::kChunk256, KvLayoutKind::kRing},
    {Form::kDecode, Arith::kChunk256, KvLayoutKind::kPaged},
    {Form::kDecode, Arith::kTile64, KvLayoutKind::kLinear},
    {Form::kDecode, Arith::kTile64, KvLayoutKind::kRing},
    {Form::kDecode, Arith::kTile64, KvLayoutKind::kPaged},
    {Form::kDecode, Arith::kTile64Ex2, KvLayoutKind::kLinear},
    {Form::kDecode, Arith::kTile64Ex2, KvLayoutKind::kRing},
    {Form::kDecode, Arith::kTile64Ex2, KvLayoutKind::kPaged},
    {Form::kPrefill, Arith::kTile64, KvLayoutKind::kLinear},
    {Form::kPrefill, Arith::kTile64, KvLayoutKind::kRing},
    {Form::kPrefill, Arith::kTile64, KvLayoutKind::kPaged},
    {Form::kPrefill, Arith::kTile64Ex2, KvLayoutKind::kLinear},
    {Form::kPrefill, Arith::kTile64Ex2, KvLayoutKind::kRing},
    {Form::kPrefill, Arith::kTile64Ex2, KvLayoutKind::kPaged},
    {Form::kPrefill, Arith::kMma32, KvLayoutKind::kLinear},
    {Form::kPrefill, Arith::kMma32, KvLayoutKind::kRing},
    {Form::kPrefill, Arith::kMma32, KvLayoutKind::kPaged},
};

// tile64 and mma32 are made of mma.sync steps: chips that have them, and the host that models them.
bool has_steps(const Target& target) {
  return target.mma_step == MmaStep::kTwoK8 || target.mma_step == MmaStep::kOneK16;
}

// tile64_ex2's bits are those of a special-function unit whose results are known over every input
// (kernel_src/common/sfu_model.cuh): sm_90's, and the host that models it with sm_90's step.
bool has_known_ex2(const Target& target) {
  if (target.mma_step != MmaStep::kOneK16) return false;
  return target.vendor == Vendor::kHost || target.arch == "sm_90a" || target.arch == "sm_90";
}

bool runs_on(const Kernel& kernel, const Target& target) {
  if (kernel.arith == Arith::kTile64Ex2) return has_known_ex2(target);
  return kernel.arith == Arith::kChunk256 || has_steps(target);
}

std::string existing(const Target& target) {
  std::string words;
  for (const Kernel& kernel : kKernels) {
    if (!runs_on(kernel, target)) continue;
    words += fmt::format("{}form={} arith={} kv_layout={}", words.empty() ? "" : "; ",
                         name_of(kernel.form), name_of(kernel.arith), name_of(kernel.layout));
  }
  return words;
}

// The arithmetic that `arith=default` means. The only place that decides it.
Arith default_arith(Form form, const Target& target) {
  // A decode gives its prefill's bits wherever the prefill's arithmetic has a kernel.
  const bool is_prefill = form == Form::kPrefill;
  if (has_known_ex2(target)) return Arith::kTile64Ex2;
  return is_prefill || has_steps(target) ? Arith::kTile64 : Arith::kChunk256;
}

WindowRowsShape with_defaults(const WindowRowsShape& shape, const Target& target) {
  WindowRowsShape out = shape;
  if (out.arith != Arith::kDefault) return out;
  out.arith = default_arith(out.form, target);
  // chunk256 keeps P in fp32 throughout, which is more than p32 asks of P.
  if (out.arith == Arith::kChunk256) out.p32 = Switch::kOff;
  return out;
}

Result<void> check_kernel(const WindowRowsShape& shape, const Target& target) {
  const bool exists =
      std::any_of(std::begin(kKernels), std::end(kKernels), [&](const Kernel& kernel) {
        return kernel.form == shape.form && kernel.arith == shape.arith &&
               kernel.layout == shape.kv_layout.kind && runs_on(kernel, target);
      });
  if (exists) return {};
  Error error =
      refused(ErrorCode::kUnsupported,
              fmt::format("form={} arith={} kv_layout={} has no kernel yet on {}; these have: {}",
                          name_of(shape.form), name_of(shape.arith), name_of(shape.kv_layout.kind),
                          target.name, existing(target)));
  error.reason = Reason::kNoKernel;
  return error;
}

}  // namespace

Result<void> check_ranges(const WindowRowsShape& shape) {
  if (std::find(std::begin(kHeadDims), std::end(kHeadDims), shape.head_dim) ==
      std::end(kHeadDims)) {
    return refused(ErrorCode::kInvalidArgument,
                   fmt::format("head_dim={} is not served; {} are", shape.head_dim,
                               fmt::join(kHeadDims, ", ")));
  }
  if (shape.gqa_ratio < 1 || shape.gqa_ratio > kMaxRatio) {
    return refused(ErrorCode::kInvalidArgument,
                   fmt::format("gqa_ratio={} is not served; 1..{} query heads a KV head are",
                               shape.gqa_ratio, kMaxRatio));
  }
  if (shape.window > kMaxWindow) {
    return refused(ErrorCode::kInvalidArgument,
                   fmt::format("window={} is not served; 0 (none) or 1..{} keys are", shape.window,
                               kMaxWindow));
  }
  if (auto layout = check_layout(shape); !layout) return layout;
  return check_form(shape);
}

Result<WindowRowsShape> resolve(const WindowRowsShape& shape, const Target& target) {
  // Ranges after defaults: a default may stand for an arithmetic that other fields do not go with.
  const WindowRowsShape out = with_defaults(shape, target);
  if (auto ranges = check_ranges(out); !ranges) return ranges.error();
  if (auto kernel = check_kernel(out, target); !kernel) return kernel.error();
  return out;
}

}  // namespace broach::specializer::window_rows
