#pragma once

#include <optional>
#include <vector>

#include "cache/cache.hpp"
#include "specializer/plan.hpp"
#include "tools/broach/key_fields.hpp"

namespace broach::tool {

/// The entry whose key shares most fields with one that is not there, and where the two differ.
struct Nearest {
  cache::Entry entry;
  std::vector<KeyDifference> differences;
};

/// Looks for it among the entries of the plan's family. Nothing where the family has none that can
/// be read.
Result<std::optional<Nearest>> nearest_entry(cache::Cache& cache, const specializer::Plan& plan,
                                             const cache::KeyRecord& wanted);

}  // namespace broach::tool
