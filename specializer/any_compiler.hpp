#pragma once

#include <span>
#include <vector>

#include "cache/cache.hpp"
#include "cache/key.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

/// A key's fields but the compiler's, which labels exactly one.
std::vector<cache::KeyField> without_compiler(std::vector<cache::KeyField> fields);

/// The keys of what any compiler made of exactly this plan, the newest first. Every other field of
/// the key is the plan's: which compiler it was cannot matter where there is none to ask.
///
/// `entries` is the cache's listing, read once for many plans.
///
/// Errors:  none: an entry that cannot be read is not one that serves.
std::vector<cache::KeyRecord> made_by_any_compiler(cache::Cache& cache,
                                                   std::span<const cache::Entry> entries,
                                                   const Plan& plan);

}  // namespace broach::specializer
