#pragma once

#include <cstdint>
#include <vector>

#include "cache/cache.hpp"
#include "cache/filesystem.hpp"
#include "cache/index.hpp"

namespace broach::cache {

struct Budget {
  std::uint64_t bytes = 0;
  std::uint64_t objects = 0;
};

/// A budget that also leaves a reserve of the file system's bytes and inodes to others: a
/// twentieth, and no more than 256 MiB and 4,096 files.
Budget within_free_space(const Budget& budget, const Usage& used, const FreeSpace& space);

/// Sorts entries so that those to give up first come first: many bytes, long unused, quickly made
/// again.
///
/// Units:   a byte held for a second, a second of compiling saved.
void sort_by_eviction(std::vector<Entry>& entries, std::int64_t now_ms);

/// How many of the sorted entries must go for the rest to fit.
std::size_t count_to_evict(const std::vector<Entry>& sorted, const Budget& budget);

}  // namespace broach::cache
