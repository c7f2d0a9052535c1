#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "broach/result.hpp"
#include "specializer/own/own_family.hpp"

namespace broach::specializer::own {

/// Reads a family file and the sources that it lists, which lie below its directory.
///
/// Each path is walked as a cache directory's is: what others than this user and root could have
/// written is refused.
///
/// Units:   a family file of at most 1 MiB, sources of 16 MiB each and 64 MiB in all.
/// Errors:  kNotFound; kDenied with the part of the path that others can write; kLimitExceeded;
///          kInvalidArgument as read_description.
Result<std::shared_ptr<const OwnFamily>> load_family(const std::filesystem::path& file,
                                                     const CompilersOptions& toolkits = {});

/// The family files that a path stands for: itself, or a directory's *.family.json by name.
///
/// Errors:  kNotFound; the operating system's.
Result<std::vector<std::filesystem::path>> family_files(const std::filesystem::path& path);

}  // namespace broach::specializer::own
