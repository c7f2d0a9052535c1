#include "tools/broach/left_out.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "tools/broach/format.hpp"

namespace broach::tool {

void tell_left_out(Output& output, const WarmRequest& request, const WarmList& list) {
  for (const specializer::NotServed& layer : list.not_served) {
    output.note(fmt::format("not served: {} {}: {}", layer.model, layer.layers, layer.reason));
  }
  if (list.without_kernel > 0) {
    output.note(
        fmt::format("{} left out that no kernel of this version serves; --form makes that "
                    "an error",
                    count_text(list.without_kernel, "shape")));
  }
  for (const RefusedRow& row : list.refused_rows) {
    output.note(
        fmt::format("a row of the journal is left out: {}: {}; `broach journal clear` "
                    "forgets all of them",
                    one_line(row.row), one_line(row.why)));
  }
  if (asks_for_nothing(request, list)) {
    output.note("nothing of what was named is served by this version");
  } else if (list.requested == 0) {
    output.note("the journal asks for nothing");
  }
}

Json not_served_json(const WarmList& list) {
  Json rows = Json::array();
  for (const specializer::NotServed& layer : list.not_served) {
    rows.push_back({{"model", layer.model}, {"layers", layer.layers}, {"reason", layer.reason}});
  }
  return rows;
}

bool asks_for_nothing(const WarmRequest& request, const WarmList& list) {
  const bool names_manifests = request.all || !request.manifests.empty();
  return names_manifests && list.requested == 0;
}

}  // namespace broach::tool
