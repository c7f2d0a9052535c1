#include "runtime/window_rows/prefill_args.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/window_rows/decode_args.hpp"

namespace broach::runtime {
namespace {

Error refuse(std::string message) {
  return Error{ErrorCode::kInvalidArgument, "window_rows prefill: " + std::move(message), {}};
}

Result<void> check_indices(const char* name, const std::int32_t* pointer, bool may_be_null) {
  if (pointer == nullptr) {
    if (may_be_null) return {};
    return refuse(fmt::format("{} is null", name));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % alignof(std::int32_t) == 0) return {};
  return refuse(fmt::format("{} is at 0x{:x}; it must be aligned to {} bytes", name, address,
                            alignof(std::int32_t)));
}

}  // namespace

Result<void> check_prefill_args(const WindowRowsShape& shape, const PrefillArgs& args) {
  const DecodeArgs& common = args.common;
  if (auto ok = check_common_args(shape, common, "window_rows prefill"); !ok) return ok;
  if (common.rows == 0) return {};
  if (args.sequences < 1 || args.sequences > common.rows) {
    return refuse(
        fmt::format("sequences is {}; it must be 1 to {}, the rows", args.sequences, common.rows));
  }
  if (auto ok = check_indices("offsets", args.offsets, false); !ok) return ok;
  if (auto ok = check_indices("hi", args.hi, true); !ok) return ok;
  if (shape.kv_layout.kind == KvLayoutKind::kRing && args.sequences == 1) {
    const std::int64_t needed = std::int64_t{shape.window} + common.rows - 1;
    if (shape.kv_layout.length < needed) {
      return refuse(
          fmt::format("rows is {}; a ring of {} holds window + rows - 1 positions for at "
                      "most {} rows: cut the chunk, or use a longer ring",
                      common.rows, shape.kv_layout.length,
                      std::int64_t{shape.kv_layout.length} - shape.window + 1));
    }
  }
  return {};
}

BroachWindowRowsPrefill prefill_params(const WindowRowsShape& shape,
                                       const PrefillArgs& args) noexcept {
  BroachWindowRowsPrefill params{};
  params.common = decode_params(shape, args.common);
  params.offsets = args.offsets;
  params.hi = args.hi;
  params.sequences = args.sequences;
  return params;
}

}  // namespace broach::runtime
