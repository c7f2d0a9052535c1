#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "specializer/shape.hpp"

namespace broach::specializer::window_rows {

/// What an entry may have beside the members of every family's. "prompt" is an alias of "prefill".
inline constexpr std::string_view kManifestMembers[] = {"q_heads", "kv_heads", "scale",
                                                        "softcap", "prefill",  "prompt"};

/// Both forms of one layer: the decode, then the prefill, which has the same fields but for what
/// the member "prefill" says. Only the layout and the checks may differ there: everything else
/// fixes bits, and a layer's decode gives its prefill's.
///
/// Errors:  kInvalidArgument with the member or field, its value, and what would work.
/// Source:  docs/manifests.md.
Result<std::vector<Shape>> shapes_of_entry(const nlohmann::json& entry);

}  // namespace broach::specializer::window_rows
