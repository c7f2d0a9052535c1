#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cache/cache.hpp"
#include "specializer/plan.hpp"
#include "tools/broach/key_fields.hpp"
#include "tools/broach/output.hpp"

namespace broach::tool {

/// The entry whose key shares most fields with one that is not there, and where the two differ.
struct Nearest {
  cache::Entry entry;
  std::vector<KeyDifference> differences;
};

Json to_json(const Nearest& nearest);

/// Looks for it among the entries of the plan's family. Nothing where the family has none that can
/// be read.
///
/// `wanted` are the fields of the plan's key; where it has no field `compiler`, any will do.
std::optional<Nearest> nearest_entry(cache::Cache& cache, std::span<const cache::Entry> entries,
                                     const specializer::Plan& plan,
                                     const std::vector<cache::KeyField>& wanted);

}  // namespace broach::tool
