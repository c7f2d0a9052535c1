#include "specializer/sparse_rows/serve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "specializer/sparse_rows/geometry.hpp"
#include "specializer/sparse_rows/shape.hpp"

namespace broach::specializer::sparse_rows {
namespace {

constexpr std::uint32_t kHeadDims[] = {64, 80, 96, 112, 128, 192, 256, 512};
constexpr std::uint32_t kMmaRatios[] = {1, 2, 4, 8, 16};
constexpr std::uint32_t kMaxRatio = 16;
constexpr std::uint32_t kMaxCompressRatio = 1U << 16;
constexpr std::uint32_t kMaxParts = 64;
constexpr std::uint32_t kMaxRing = 1U << 30;
constexpr std::uint32_t kMaxPage = 1U << 16;

Error refused(ErrorCode code, std::string message) {
  return Error{code, "sparse_rows " + std::move(message), ""};
}
Error invalid(std::string message) {
  return refused(ErrorCode::kInvalidArgument, std::move(message));
}

Result<void> check_layout(const KvLayout& layout) {
  switch (layout.kind) {
    case KvLayoutKind::kLinear:
      if (layout.length == 0) return {};
      return invalid(
          fmt::format("kv_layout=linear takes no length; this shape has {}", layout.length));
    case KvLayoutKind::kRing:
      if (layout.length >= 1 && layout.length <= kMaxRing) return {};
      return invalid(fmt::format("kv_layout=ring({}) needs a ring of 1..{} positions",
                                 layout.length, kMaxRing));
    case KvLayoutKind::kPaged:
      if (layout.length >= 1 && layout.length <= kMaxPage) return {};
      return invalid(fmt::format("kv_layout=paged({}) needs a page of 1..{} positions",
                                 layout.length, kMaxPage));
  }
  return invalid("kv_layout is not one of linear, ring, paged");
}

bool has_form(const Target& target) {
  switch (target.mma_step) {
    case MmaStep::kTwoK8:
    case MmaStep::kOneK16:
      return true;
    case MmaStep::kMfma:
      return !target.arch.starts_with("gfx908");  // Its bf16 steps are half as deep.
    case MmaStep::kWmma:
      return target.arch.starts_with("gfx11");  // gfx12's fragments lie otherwise.
    case MmaStep::kNone:
      break;
  }
  return false;
}

}  // namespace

Result<void> check_ranges(const SparseRowsShape& shape) {
  if (std::find(std::begin(kHeadDims), std::end(kHeadDims), shape.head_dim) ==
      std::end(kHeadDims)) {
    return invalid(fmt::format("head_dim={} is not served; {} are", shape.head_dim,
                               fmt::join(kHeadDims, ", ")));
  }
  if (shape.gqa_ratio < 1 || shape.gqa_ratio > kMaxRatio) {
    return invalid(fmt::format("gqa_ratio={} is not served; 1..{} query heads a KV head are",
                               shape.gqa_ratio, kMaxRatio));
  }
  if (shape.compress_ratio < 1 || shape.compress_ratio > kMaxCompressRatio) {
    return invalid(fmt::format("compress_ratio={} is not served; 1..{} keys a block are",
                               shape.compress_ratio, kMaxCompressRatio));
  }
  if (shape.part_count < 1 || shape.part_count > kMaxParts) {
    return invalid(
        fmt::format("part_count={} is not served; 1..{} parts are", shape.part_count, kMaxParts));
  }
  if (shape.p_parts < 1 || shape.p_parts > 3) {
    return invalid(fmt::format("p_parts={} is not served; 1..3 16-bit parts are", shape.p_parts));
  }
  if (shape.tile == SparseTile::kMma && std::find(std::begin(kMmaRatios), std::end(kMmaRatios),
                                                  shape.compress_ratio) == std::end(kMmaRatios)) {
    return invalid(fmt::format(
        "tile=mma needs compress_ratio in {{{}}}; this shape has {}, which tile=scalar serves",
        fmt::join(kMmaRatios, ", "), shape.compress_ratio));
  }
  return check_layout(shape.kv_layout);
}

Result<SparseRowsShape> resolve(const SparseRowsShape& shape, const Target& target) {
  if (auto ranges = check_ranges(shape); !ranges) return ranges.error();
  SparseRowsShape out = shape;
  if (shape.tile == SparseTile::kScalar) {
    out.p_parts = SparseRowsShape{}.p_parts;
    return out;
  }
  out.part_count = SparseRowsShape{}.part_count;
  if (!has_form(target)) {
    Error error = refused(ErrorCode::kUnsupported,
                          fmt::format("tile=mma has no kernel on {}, whose matrix unit (if any) "
                                      "has no form; tile=scalar works",
                                      target.name));
    error.reason = Reason::kNoKernel;
    return error;
  }
  if (!mma_geometry(out, target, static_cast<int>(out.gqa_ratio))) {
    return refused(
        ErrorCode::kLimitExceeded,
        fmt::format("tile=mma with head_dim={} gqa_ratio={} p_parts={} q_dtype={} needs more than "
                    "{}'s {} bytes of shared memory a block; tile=scalar works",
                    out.head_dim, out.gqa_ratio, out.p_parts, name_of(out.q_dtype), target.name,
                    target.max_shared_bytes));
  }
  return out;
}

}  // namespace broach::specializer::sparse_rows
