#include "runtime/attention/check_args.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace broach::runtime {
namespace {

// Rows of D elements are read 8 at a time: 16 bytes of a 16-bit type.
constexpr std::uintptr_t kRowAlignment = 16;
constexpr std::int64_t kStrideUnit = 8;

Error refused_value(std::string_view operation, const char* name, std::int64_t value,
                    const std::string& bound) {
  return refused(operation, fmt::format("{} is {}; it must be {}", name, value, bound));
}

Result<void> check_between(std::string_view operation, const char* name, std::int64_t value,
                           std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return {};
  return refused_value(operation, name, value, fmt::format("{} to {}", least, most));
}

Result<void> check_pointer(std::string_view operation, const char* name, const void* pointer,
                           std::uintptr_t alignment) {
  if (pointer == nullptr) return refused(operation, fmt::format("{} is null", name));
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % alignment == 0) return {};
  return refused(operation, fmt::format("{} is at 0x{:x}; it must be aligned to {} bytes", name,
                                        address, alignment));
}

struct Axis {
  const char* name;
  std::int64_t stride;
  std::int64_t extent;
};

/// Demands that an axis steps over everything inside it, whatever the order of the axes: then no
/// two elements share an address and every vector of 8 elements is aligned.
Result<void> check_axes(const AttentionShape& shape, std::span<Axis> axes) {
  std::sort(axes.begin(), axes.end(),
            [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  std::int64_t inner = shape.head_dim;
  for (const Axis& axis : axes) {
    if (axis.extent <= 1) continue;
    if (axis.stride < inner) {
      return refused_value(shape.operation, axis.name, axis.stride,
                           fmt::format("at least {}, the elements inside one step of it", inner));
    }
    if (axis.stride % kStrideUnit != 0) {
      return refused_value(shape.operation, axis.name, axis.stride,
                           fmt::format("a multiple of {} elements (16 bytes)", kStrideUnit));
    }
    std::int64_t steps = 0;
    if (__builtin_mul_overflow(axis.stride, axis.extent - 1, &steps) ||
        __builtin_add_overflow(inner, steps, &inner) ||
        inner > std::numeric_limits<std::int64_t>::max() / 2) {
      return refused_value(
          shape.operation, axis.name, axis.stride,
          fmt::format("small enough that {} steps of it fit in 2^63 bytes", axis.extent));
    }
  }
  return {};
}

Result<void> check_pages(const AttentionShape& shape, const broach_kv_cache& cache) {
  const std::string_view operation = shape.operation;
  if (shape.kv_layout.kind != KvLayoutKind::kPaged) {
    if (cache.page_table != nullptr) {
      return refused(operation,
                     "cache.page_table is given, but the shape's kv_layout is not paged");
    }
    if (cache.pages == 0) return {};
    return refused_value(operation, "cache.pages", cache.pages,
                         "0, since the shape's kv_layout is not paged");
  }
  const auto page = static_cast<std::int64_t>(shape.kv_layout.length);
  if (cache.length % page != 0) {
    return refused_value(operation, "cache.length", cache.length,
                         fmt::format("whole pages of {}", page));
  }
  if (auto ok = check_between(operation, "cache.pages", cache.pages, 1, INT32_MAX); !ok) return ok;
  if (auto ok = check_indices(operation, "cache.page_table", cache.page_table); !ok) return ok;
  const std::int64_t pages_a_slot = cache.length / page;
  if (cache.slots > 1 && cache.page_table_stride < pages_a_slot) {
    return refused_value(operation, "cache.page_table_stride", cache.page_table_stride,
                         fmt::format("at least {}, the pages a slot", pages_a_slot));
  }
  return {};
}

Result<void> check_keys(const AttentionShape& shape, const broach_kv_cache& cache,
                        std::int32_t max_keys) {
  const std::string_view operation = shape.operation;
  if (auto ok = check_between(operation, "cache.slots", cache.slots, 1, INT32_MAX); !ok) return ok;
  if (auto ok = check_between(operation, "cache.length", cache.length, 1, INT32_MAX); !ok) {
    return ok;
  }
  const bool ring = shape.kv_layout.kind == KvLayoutKind::kRing;
  if (ring && cache.length != static_cast<std::int64_t>(shape.kv_layout.length)) {
    return refused_value(operation, "cache.length", cache.length,
                         fmt::format("the shape's ring, {}", shape.kv_layout.length));
  }
  // A ring's positions go on past its length.
  const std::int64_t most = ring ? INT32_MAX : cache.length;
  if (auto ok = check_between(operation, "max_keys", max_keys, 0, most); !ok) return ok;
  return check_pages(shape, cache);
}

Result<void> check_tensors(const AttentionShape& shape, const broach_attention_rows& attention,
                           const broach_kv_cache& cache) {
  const std::int64_t heads = std::int64_t{cache.kv_heads} * shape.gqa_ratio;
  const bool paged = shape.kv_layout.kind == KvLayoutKind::kPaged;
  const std::int64_t slots = paged ? cache.pages : cache.slots;
  const std::int64_t positions = paged ? std::int64_t{shape.kv_layout.length} : cache.length;
  std::array<Axis, 2> q{Axis{"attention.q_row_stride", attention.q_row_stride, attention.rows},
                        Axis{"attention.q_head_stride", attention.q_head_stride, heads}};
  std::array<Axis, 2> out{
      Axis{"attention.out_row_stride", attention.out_row_stride, attention.rows},
      Axis{"attention.out_head_stride", attention.out_head_stride, heads}};
  std::array<Axis, 3> k{Axis{"cache.k_slot_stride", cache.k_slot_stride, slots},
                        Axis{"cache.k_position_stride", cache.k_position_stride, positions},
                        Axis{"cache.k_head_stride", cache.k_head_stride, cache.kv_heads}};
  std::array<Axis, 3> v{Axis{"cache.v_slot_stride", cache.v_slot_stride, slots},
                        Axis{"cache.v_position_stride", cache.v_position_stride, positions},
                        Axis{"cache.v_head_stride", cache.v_head_stride, cache.kv_heads}};
  for (const std::span<Axis> axes :
       {std::span<Axis>(q), std::span<Axis>(k), std::span<Axis>(v), std::span<Axis>(out)}) {
    if (auto ok = check_axes(shape, axes); !ok) return ok;
  }
  for (const auto& [name, pointer] :
       {std::pair<const char*, const void*>{"attention.q", attention.q},
        {"cache.k", cache.k},
        {"cache.v", cache.v},
        {"attention.out", attention.out}}) {
    if (auto ok = check_pointer(shape.operation, name, pointer, kRowAlignment); !ok) return ok;
  }
  return {};
}

Result<void> check_scores(const AttentionShape& shape, const broach_attention_rows& attention) {
  const std::string_view operation = shape.operation;
  if (!std::isfinite(attention.scale)) {
    return refused(operation,
                   fmt::format("attention.scale is {}; it must be finite", attention.scale));
  }
  if (shape.softcap == Switch::kOn &&
      !(std::isfinite(attention.softcap) && attention.softcap > 0)) {
    return refused(operation,
                   fmt::format("attention.softcap is {}; the shape has softcap=on, so it must be "
                               "finite and above 0",
                               attention.softcap));
  }
  if (shape.softcap == Switch::kOff && attention.softcap != 0) {
    return refused(operation, fmt::format("attention.softcap is {}, but the shape has softcap=off",
                                          attention.softcap));
  }
  if (shape.sinks == Switch::kOn) {
    return check_pointer(operation, "attention.sinks", attention.sinks, alignof(float));
  }
  if (attention.sinks == nullptr) return {};
  return refused(operation, "attention.sinks is given, but the shape has sinks=off");
}

}  // namespace

Error refused(std::string_view operation, std::string message) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", operation, message), {}};
}

Result<void> check_indices(std::string_view operation, const char* name, const int* pointer) {
  return check_pointer(operation, name, pointer, alignof(int));
}

Result<void> check_attention(const AttentionShape& shape, const AttentionBounds& bounds,
                             const broach_attention_rows& attention, const broach_kv_cache& cache,
                             std::int32_t max_keys) {
  const std::string_view operation = shape.operation;
  if (auto ok = check_between(operation, "attention.rows", attention.rows, 0, bounds.rows); !ok) {
    return ok;
  }
  if (auto ok = check_between(operation, "cache.kv_heads", cache.kv_heads, 1, bounds.kv_heads);
      !ok) {
    return ok;
  }
  if (attention.reserved != 0) {
    return refused_value(operation, "attention.reserved", attention.reserved,
                         "0: fill the structure with zeros first");
  }
  if (auto ok = check_keys(shape, cache, max_keys); !ok) return ok;
  if (auto ok = check_scores(shape, attention); !ok) return ok;
  return check_tensors(shape, attention, cache);
}

Result<void> check_workspace(std::string_view operation, const void* workspace, std::size_t bytes,
                             std::size_t needed) {
  if (needed == 0) return {};
  if (needed == std::numeric_limits<std::size_t>::max()) {
    return refused(operation, "no workspace is large enough for so many rows, KV heads and keys");
  }
  if (bytes < needed) {
    return refused(operation,
                   fmt::format("workspace_bytes is {}; this launch needs {}", bytes, needed));
  }
  return check_pointer(operation, "workspace", workspace, kRowAlignment);
}

}  // namespace broach::runtime
