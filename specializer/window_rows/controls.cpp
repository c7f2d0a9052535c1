#include "specializer/window_rows/controls.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace broach::specializer::window_rows {
namespace {

enum Kernels : std::uint8_t {
  kChunk256 = 1,
  kDecode = 2,   // of an arithmetic made of MMA steps
  kPrefill = 4,  // likewise
  kAll = kChunk256 | kDecode | kPrefill,
};

struct Fault {
  std::string_view name;
  std::uint8_t kernels;         // that have it
  std::string_view needs = {};  // of a shape, as text; without it the kernel is the sound one
  bool (*met)(const WindowRowsShape& shape, Switch generic) = nullptr;
};

// kernel_src/window_rows/config.h says what each does.
constexpr Fault kFaults[] = {
    {"window_early", kAll, "window of 1 or more",
     [](const WindowRowsShape& shape, Switch generic) {
       return shape.window > 0 || generic == Switch::kOn;
     }},
    {"unmasked_block", kChunk256},
    {"ratio_off_by_one", kAll},
    {"page_off_by_one", kAll, "kv_layout=paged(N)",
     [](const WindowRowsShape& shape, Switch generic) {
       return shape.kv_layout.kind == KvLayoutKind::kPaged || generic == Switch::kOn;
     }},
    {"rounding_dropped", kChunk256},
    {"rescale_dropped", kAll},
    {"combine_reversed", kDecode | kPrefill},
    {"p_rounded", kDecode | kPrefill},
    {"low_half_dropped", kDecode | kPrefill, "p32=on",
     [](const WindowRowsShape& shape, Switch) { return shape.p32 == Switch::kOn; }},
    {"hi_ignored", kPrefill},
    {"sink_left_out", kAll, "sinks=on",
     [](const WindowRowsShape& shape, Switch) { return shape.sinks == Switch::kOn; }},
    {"output_toward_zero", kAll},
    {"rerun_dropped", kAll},
    {"whole_block_rerun", kAll},
};

const Fault* fault_named(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kFaults), std::end(kFaults),
                                         [&](const Fault& one) { return one.name == name; });
  return found == std::end(kFaults) ? nullptr : found;
}

}  // namespace

bool has_control(std::string_view control, const WindowRowsShape& shape) {
  const Fault* const fault = fault_named(control);
  if (fault == nullptr) return false;
  const Kernels kernel = shape.arith == Arith::kChunk256 ? kChunk256
                         : shape.form == Form::kPrefill  ? kPrefill
                                                         : kDecode;
  return (fault->kernels & kernel) != 0;
}

std::string_view missing_for(std::string_view control, const WindowRowsShape& shape,
                             Switch generic) {
  const Fault* const fault = fault_named(control);
  if (fault == nullptr || fault->met == nullptr || fault->met(shape, generic)) return {};
  return fault->needs;
}

}  // namespace broach::specializer::window_rows
