#pragma once

#include "tools/broach/output.hpp"
#include "tools/broach/warm_request.hpp"

namespace broach::tool {

/// Says what a request names and what is not among its jobs, and why: layers that no family serves,
/// shapes without a kernel, rows of the journal.
void tell_left_out(Output& output, const WarmRequest& request, const WarmList& list);

/// The layers that no family serves, for JSON.
Json not_served_json(const WarmList& list);

/// Whether a request that names manifests comes to nothing at all.
bool asks_for_nothing(const WarmRequest& request, const WarmList& list);

}  // namespace broach::tool
