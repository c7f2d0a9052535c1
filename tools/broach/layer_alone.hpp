#pragma once

#include <memory>
#include <string>

#include "broach/options.hpp"
#include "broach/result.hpp"
#include "cache/cache.hpp"

namespace broach::tool {

/// What a command ends with that was given a directory or bundle and met this error in it: one that
/// is not there, or that a newer version wrote, cannot be read (kIo).
ErrorCode code_of_place(ErrorCode code) noexcept;

/// Opens one cache directory or bundle as the only layer there is, read-only.
///
/// Errors:  kInvalidArgument when the path names nothing; kIo when it is neither; kDenied when it
/// is
///          not trusted; kDamaged, kLimitExceeded for a bundle that does not check out.
Result<std::unique_ptr<cache::Cache>> open_alone(const std::string& path, const Options& options,
                                                 cache::BundleTrust bundle_trust);

}  // namespace broach::tool
