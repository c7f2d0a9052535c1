#include "runtime/qk_rows/args.hpp"

#include <fmt/core.h>

#include <cmath>

#include "runtime/attention/check_args.hpp"

namespace broach::runtime {
namespace {

constexpr std::string_view kOperation = "qk_rows";
constexpr std::int64_t kStrideUnit = 8;  // Heads are read 8 elements at a time.

Result<void> check_aligned(const char* name, const void* pointer, std::uintptr_t alignment) {
  if (pointer == nullptr) return refused(kOperation, fmt::format("{} is null", name));
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0) return {};
  return refused(kOperation, fmt::format("{} must be aligned to {} bytes", name, alignment));
}

/// A tensor that a shape has, or one that it must not be given.
Result<void> check_vector(const char* name, const float* pointer, bool wanted,
                          std::string_view field) {
  if (wanted) return check_aligned(name, pointer, alignof(float));
  if (pointer == nullptr) return {};
  return refused(kOperation, fmt::format("{} is given, but the shape has {}", name, field));
}

Result<void> check_projection(const char* name, const void* pointer, std::int64_t row_stride,
                              std::int64_t head_stride, std::int64_t rows, std::int64_t heads,
                              std::int64_t head_dim) {
  if (auto ok = check_aligned(name, pointer, 16); !ok) return ok;
  if (row_stride % kStrideUnit != 0 || head_stride % kStrideUnit != 0) {
    return refused(kOperation,
                   fmt::format("{}_row_stride is {} and {}_head_stride {}; multiples of "
                               "{} elements work",
                               name, row_stride, name, head_stride, kStrideUnit));
  }
  if (heads > 1 && head_stride < head_dim) {
    return refused(kOperation, fmt::format("{}_head_stride is {}; it must be at least {}", name,
                                           head_stride, head_dim));
  }
  if (rows > 1 && row_stride < head_dim) {
    return refused(kOperation, fmt::format("{}_row_stride is {}; it must be at least {}", name,
                                           row_stride, head_dim));
  }
  return {};
}

}  // namespace

Result<void> check_qk_rows_args(const QkRowsShape& shape, const broach_qk_rows_args& args) {
  // The queries and the cache are an attention's; K and V of the rows are this family's own.
  AttentionShape attention{};
  attention.operation = kOperation;
  attention.head_dim = shape.head_dim;
  attention.gqa_ratio = shape.gqa_ratio;
  attention.kv_layout = shape.kv_layout;
  broach_attention_rows queries{};
  queries.q = args.q;
  queries.out = args.q_out;
  queries.q_row_stride = args.q_row_stride;
  queries.q_head_stride = args.q_head_stride;
  queries.out_row_stride = args.q_out_row_stride;
  queries.out_head_stride = args.q_out_head_stride;
  queries.rows = args.rows;
  queries.scale = 1.0F;
  if (auto ok = check_attention(attention, {}, queries, args.cache, 0); !ok) return ok;
  const auto head_dim = static_cast<std::int64_t>(shape.head_dim);
  if (auto ok = check_projection("k", args.k, args.k_row_stride, args.k_head_stride, args.rows,
                                 args.cache.kv_heads, head_dim);
      !ok) {
    return ok;
  }
  if (auto ok = check_projection("v", args.v, args.v_row_stride, args.v_head_stride, args.rows,
                                 args.cache.kv_heads, head_dim);
      !ok) {
    return ok;
  }
  if (args.q == args.q_out && (args.q_row_stride != args.q_out_row_stride ||
                               args.q_head_stride != args.q_out_head_stride)) {
    return refused(kOperation, "q_out is q, so it must have q's strides");
  }
  const bool rms = shape.norm == HeadNorm::kRms;
  const bool scales = shape.q_scale == Switch::kOn;
  if (auto ok = check_vector("inverse_frequencies", args.inverse_frequencies, shape.rope_dim > 0,
                             "rope_dim=0");
      !ok) {
    return ok;
  }
  if (auto ok = check_vector("q_norm", args.q_norm, rms, "no norm=rms"); !ok) return ok;
  if (auto ok = check_vector("k_norm", args.k_norm, rms, "no norm=rms"); !ok) return ok;
  if (auto ok = check_vector("q_scale", args.q_scale, scales, "q_scale=off"); !ok) return ok;
  if (args.q_scale_head_stride < 0) {
    return refused(kOperation, fmt::format("q_scale_head_stride is {}; it must be 0 or more",
                                           args.q_scale_head_stride));
  }
  if (shape.norm != HeadNorm::kNone && !(std::isfinite(args.epsilon) && args.epsilon >= 0)) {
    return refused(kOperation,
                   fmt::format("epsilon is {}; it must be finite and 0 or more", args.epsilon));
  }
  if (auto ok = check_indices(kOperation, "positions", args.positions); !ok) return ok;
  return check_indices(kOperation, "slots", args.slots);
}

BroachQkRows qk_rows_params(const QkRowsShape& shape, const broach_qk_rows_args& args) noexcept {
  BroachQkRows p{};
  p.cache = args.cache;
  p.q = args.q;
  p.k = args.k;
  p.v = args.v;
  p.q_out = args.q_out;
  p.inverse_frequencies = args.inverse_frequencies;
  p.q_norm = args.q_norm;
  p.k_norm = args.k_norm;
  p.q_scale = args.q_scale;
  p.positions = args.positions;
  p.slots = args.slots;
  p.q_row_stride = args.q_row_stride;
  p.q_head_stride = args.q_head_stride;
  p.k_row_stride = args.k_row_stride;
  p.k_head_stride = args.k_head_stride;
  p.v_row_stride = args.v_row_stride;
  p.v_head_stride = args.v_head_stride;
  p.q_out_row_stride = args.q_out_row_stride;
  p.q_out_head_stride = args.q_out_head_stride;
  p.q_scale_head_stride = args.q_scale_head_stride;
  p.rows = args.rows;
  p.epsilon = args.epsilon;
  p.gqa_ratio = static_cast<int>(shape.gqa_ratio);
  p.rope_dim = static_cast<int>(shape.rope_dim);
  p.layout = static_cast<int>(shape.kv_layout.kind);
  p.layout_length = static_cast<int>(shape.kv_layout.length);
  return p;
}

}  // namespace broach::runtime
