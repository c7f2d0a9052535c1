#pragma once

#include <memory>
#include <string>

#include "broach/options.hpp"
#include "broach/result.hpp"
#include "cache/cache.hpp"

namespace broach::tool {

/// Opens one cache directory or bundle as the only layer there is, read-only.
///
/// Errors:  kInvalidArgument when the path is neither; what makes it unusable, in its words.
Result<std::unique_ptr<cache::Cache>> open_alone(const std::string& path, const Options& options,
                                                 cache::BundleTrust bundle_trust);

}  // namespace broach::tool
