#pragma once

#include <string>

#include "broach/result.hpp"
#include "cache/cache.hpp"

namespace broach::tool {

/// The entry whose key begins with these digits, read and checked whole.
///
/// Errors:  as find_key; kNotFound when it went meanwhile; kDamaged.
Result<cache::Object> stored_object(cache::Cache& cache, const std::string& digits);

}  // namespace broach::tool
