#include "specializer/window_rows/controls.hpp"

#include <algorithm>
#include <iterator>

namespace broach::specializer::window_rows {
namespace {

struct Need {
  std::string_view control;
  std::string_view words;
  bool (*met)(const WindowRowsShape& shape, Switch generic);
};

// Faults that are not here change every kernel that has them.
constexpr Need kNeeds[] = {
    {"window_early", "window of 1 or more",
     [](const WindowRowsShape& shape, Switch generic) {
       return shape.window > 0 || generic == Switch::kOn;
     }},
    {"page_off_by_one", "kv_layout=paged(N)",
     [](const WindowRowsShape& shape, Switch generic) {
       return shape.kv_layout.kind == KvLayoutKind::kPaged || generic == Switch::kOn;
     }},
    {"low_half_dropped", "p32=on",
     [](const WindowRowsShape& shape, Switch) { return shape.p32 == Switch::kOn; }},
    {"sink_left_out", "sinks=on",
     [](const WindowRowsShape& shape, Switch) { return shape.sinks == Switch::kOn; }},
};

}  // namespace

std::string_view missing_for(std::string_view control, const WindowRowsShape& shape,
                             Switch generic) {
  const auto* const need = std::find_if(std::begin(kNeeds), std::end(kNeeds),
                                        [&](const Need& one) { return one.control == control; });
  if (need == std::end(kNeeds) || need->met(shape, generic)) return {};
  return need->words;
}

}  // namespace broach::specializer::window_rows
