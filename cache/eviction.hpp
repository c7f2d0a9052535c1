#pragma once

#include <cstdint>
#include <vector>

#include "cache/cache.hpp"

namespace broach::cache {

struct Budget {
  std::uint64_t bytes = 0;
  std::uint64_t objects = 0;
};

/// Sorts entries so that those to give up first come first: many bytes, long unused, quickly made
/// again.
///
/// Units:   a byte held for a second, a second of compiling saved.
void sort_by_eviction(std::vector<Entry>& entries, std::int64_t now_ms);

/// How many of the sorted entries must go for the rest to fit.
std::size_t count_to_evict(const std::vector<Entry>& sorted, const Budget& budget);

}  // namespace broach::cache
