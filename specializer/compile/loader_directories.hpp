#pragma once

#include <filesystem>
#include <vector>

namespace broach::specializer {

/// Appends a directory unless it is there already.
void add_once(std::vector<std::filesystem::path>& directories, std::filesystem::path directory);

/// Appends the directories that this process's loader searches: LD_LIBRARY_PATH and its defaults.
void add_loader_directories(std::vector<std::filesystem::path>& directories);

/// Appends the directories of /etc/ld.so.conf and what it includes, which the loader knows through
/// its cache.
void add_configured_directories(std::vector<std::filesystem::path>& directories);

}  // namespace broach::specializer
