#include "runtime/window_rows/decode_args.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace broach::runtime {
namespace {

// Rows and KV heads are a grid's y and z on CUDA, which end at 2^16 - 1.
constexpr std::int64_t kMaxGridYz = 65535;

// Rows of D elements are read 8 at a time: 16 bytes of a 16-bit type.
constexpr std::uintptr_t kRowAlignment = 16;
constexpr std::int64_t kStrideUnit = 8;

Error refuse(std::string message) {
  return Error{ErrorCode::kInvalidArgument, "window_rows decode: " + std::move(message), {}};
}

Error refuse_value(const char* name, std::int64_t value, const std::string& bound) {
  return refuse(fmt::format("{} is {}; it must be {}", name, value, bound));
}

Result<void> check_between(const char* name, std::int64_t value, std::int64_t least,
                           std::int64_t most) {
  if (value >= least && value <= most) return {};
  return refuse_value(name, value, fmt::format("{} to {}", least, most));
}

Result<void> check_pointer(const char* name, const void* pointer, std::uintptr_t alignment) {
  if (pointer == nullptr) return refuse(fmt::format("{} is null", name));
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % alignment == 0) return {};
  return refuse(
      fmt::format("{} is at 0x{:x}; it must be aligned to {} bytes", name, address, alignment));
}

struct Axis {
  const char* name;
  std::int64_t stride;
  std::int64_t extent;
};

/// Demands that an axis steps over everything inside it, whatever the order of the axes: then no
/// two elements share an address and every vector of 8 elements is aligned.
Result<void> check_axes(std::span<Axis> axes, std::int64_t head_dim) {
  std::sort(axes.begin(), axes.end(),
            [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  std::int64_t inner = head_dim;
  for (const Axis& axis : axes) {
    if (axis.extent <= 1) continue;
    if (axis.stride < inner) {
      return refuse_value(axis.name, axis.stride,
                          fmt::format("at least {}, the elements inside one step of it", inner));
    }
    if (axis.stride % kStrideUnit != 0) {
      return refuse_value(axis.name, axis.stride,
                          fmt::format("a multiple of {} elements (16 bytes)", kStrideUnit));
    }
    std::int64_t steps = 0;
    if (__builtin_mul_overflow(axis.stride, axis.extent - 1, &steps) ||
        __builtin_add_overflow(inner, steps, &inner) ||
        inner > std::numeric_limits<std::int64_t>::max() / 2) {
      return refuse_value(
          axis.name, axis.stride,
          fmt::format("small enough that {} steps of it fit in 2^63 bytes", axis.extent));
    }
  }
  return {};
}

Result<void> check_keys(const WindowRowsShape& shape, const DecodeArgs& args) {
  const auto ring_or_page = static_cast<std::int64_t>(shape.kv_layout.length);
  if (auto ok = check_between("slot_count", args.slot_count, 1, INT32_MAX); !ok) return ok;
  if (auto ok = check_between("length", args.length, 1, INT32_MAX); !ok) return ok;
  if (shape.kv_layout.kind == KvLayoutKind::kRing && args.length != ring_or_page) {
    return refuse_value("length", args.length, fmt::format("the shape's ring, {}", ring_or_page));
  }
  // A ring's positions go on past its length.
  const std::int64_t most = shape.kv_layout.kind == KvLayoutKind::kRing ? INT32_MAX : args.length;
  if (auto ok = check_between("max_keys", args.max_keys, 0, most); !ok) return ok;
  if (shape.kv_layout.kind != KvLayoutKind::kPaged) {
    if (args.page_table == nullptr) return {};
    return refuse("page_table is given, but the shape's kv_layout is not paged");
  }
  if (args.length % ring_or_page != 0) {
    return refuse_value("length", args.length, fmt::format("whole pages of {}", ring_or_page));
  }
  if (auto ok = check_pointer("page_table", args.page_table, alignof(std::int32_t)); !ok) return ok;
  const std::int64_t pages = args.length / ring_or_page;
  if (args.slot_count > 1 && args.page_table_stride < pages) {
    return refuse_value("page_table_stride", args.page_table_stride,
                        fmt::format("at least {}, the pages a slot", pages));
  }
  return {};
}

Result<void> check_tensors(const WindowRowsShape& shape, const DecodeArgs& args) {
  const auto head_dim = static_cast<std::int64_t>(shape.head_dim);
  const std::int64_t heads = std::int64_t{args.kv_heads} * shape.gqa_ratio;
  const bool paged = shape.kv_layout.kind == KvLayoutKind::kPaged;
  // How many pages there are is in device memory; two say enough about the stride between them.
  const std::int64_t slots = paged ? 2 : args.slot_count;
  const std::int64_t positions = paged ? std::int64_t{shape.kv_layout.length} : args.length;
  std::array<Axis, 2> q{Axis{"q_row_stride", args.q_row_stride, args.rows},
                        Axis{"q_head_stride", args.q_head_stride, heads}};
  std::array<Axis, 2> out{Axis{"out_row_stride", args.out_row_stride, args.rows},
                          Axis{"out_head_stride", args.out_head_stride, heads}};
  std::array<Axis, 3> k{Axis{"k_slot_stride", args.k_slot_stride, slots},
                        Axis{"k_position_stride", args.k_position_stride, positions},
                        Axis{"k_head_stride", args.k_head_stride, args.kv_heads}};
  std::array<Axis, 3> v{Axis{"v_slot_stride", args.v_slot_stride, slots},
                        Axis{"v_position_stride", args.v_position_stride, positions},
                        Axis{"v_head_stride", args.v_head_stride, args.kv_heads}};
  for (const std::span<Axis> axes :
       {std::span<Axis>(q), std::span<Axis>(k), std::span<Axis>(v), std::span<Axis>(out)}) {
    if (auto ok = check_axes(axes, head_dim); !ok) return ok;
  }
  for (const auto& [name, pointer] : {std::pair<const char*, const void*>{"q", args.q},
                                      {"k", args.k},
                                      {"v", args.v},
                                      {"out", args.out}}) {
    if (auto ok = check_pointer(name, pointer, kRowAlignment); !ok) return ok;
  }
  if (auto ok = check_pointer("positions", args.positions, alignof(std::int32_t)); !ok) return ok;
  return check_pointer("slots", args.slots, alignof(std::int32_t));
}

Result<void> check_scores(const WindowRowsShape& shape, const DecodeArgs& args) {
  if (!std::isfinite(args.scale)) {
    return refuse(fmt::format("scale is {}; it must be finite", args.scale));
  }
  if (shape.softcap == Switch::kOn && !(std::isfinite(args.softcap) && args.softcap > 0)) {
    return refuse(
        fmt::format("softcap is {}; the shape has softcap=on, so it must be finite and "
                    "above 0",
                    args.softcap));
  }
  if (shape.softcap == Switch::kOff && args.softcap != 0) {
    return refuse(fmt::format("softcap is {}, but the shape has softcap=off", args.softcap));
  }
  if (shape.sinks == Switch::kOff) {
    if (args.sinks == nullptr) return {};
    return refuse("sinks is given, but the shape has sinks=off");
  }
  return check_pointer("sinks", args.sinks, alignof(float));
}

Result<void> check_args(const WindowRowsShape& shape, const DecodeArgs& args,
                        std::int64_t most_rows) {
  if (auto ok = check_between("rows", args.rows, 0, most_rows); !ok) return ok;
  if (auto ok = check_between("kv_heads", args.kv_heads, 1, kMaxGridYz); !ok) return ok;
  if (auto ok = check_keys(shape, args); !ok) return ok;
  if (auto ok = check_scores(shape, args); !ok) return ok;
  return check_tensors(shape, args);
}

}  // namespace

Result<void> check_decode_args(const WindowRowsShape& shape, const DecodeArgs& args) {
  return check_args(shape, args, kMaxGridYz);
}

Result<void> check_common_args(const WindowRowsShape& shape, const DecodeArgs& args,
                               std::string_view operation) {
  const std::int64_t most_kv_heads = kMaxGridYz / std::int64_t{shape.gqa_ratio};
  auto ok = args.kv_heads <= most_kv_heads
                ? check_args(shape, args, INT32_MAX)
                : Result<void>(refuse_value(
                      "kv_heads", args.kv_heads,
                      fmt::format("at most {}: query heads are a grid's y", most_kv_heads)));
  if (ok) return ok;
  Error error = ok.error();
  constexpr std::string_view kPrefix = "window_rows decode";
  if (error.message.starts_with(kPrefix)) error.message.replace(0, kPrefix.size(), operation);
  return error;
}

Result<void> check_workspace(const DecodeArgs& args, std::size_t workspace_needed) {
  if (workspace_needed == 0) return {};
  if (args.workspace_bytes < workspace_needed) {
    return refuse(fmt::format("workspace_bytes is {}; {} rows and {} KV heads need {}",
                              args.workspace_bytes, args.rows, args.kv_heads, workspace_needed));
  }
  return check_pointer("workspace", args.workspace, kRowAlignment);
}

std::int32_t key_bound(const DecodeArgs& args) noexcept {
  return args.max_keys > 0 ? args.max_keys : args.length;
}

BroachWindowRowsDecode decode_params(const WindowRowsShape& shape,
                                     const DecodeArgs& args) noexcept {
  BroachWindowRowsDecode params{};
  params.attention = {args.q,
                      args.out,
                      args.sinks,
                      args.q_row_stride,
                      args.q_head_stride,
                      args.out_row_stride,
                      args.out_head_stride,
                      args.rows,
                      args.scale,
                      args.softcap,
                      0};
  // The kernels read keys and values only.
  params.cache = {const_cast<void*>(args.k),
                  const_cast<void*>(args.v),
                  args.page_table,
                  args.k_slot_stride,
                  args.k_position_stride,
                  args.k_head_stride,
                  args.v_slot_stride,
                  args.v_position_stride,
                  args.v_head_stride,
                  args.page_table_stride,
                  args.kv_heads,
                  args.slot_count,
                  args.length,
                  0};
  params.positions = args.positions;
  params.slots = args.slots;
  params.workspace = args.workspace;
  params.window = static_cast<int>(shape.window);
  params.gqa_ratio = static_cast<int>(shape.gqa_ratio);
  params.layout = static_cast<int>(shape.kv_layout.kind);
  params.layout_length = static_cast<int>(shape.kv_layout.length);
  return params;
}

}  // namespace broach::runtime
