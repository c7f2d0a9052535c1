#pragma once

#include <cstddef>
#include <cstring>

#include "cache/key.hpp"

namespace broach::cache {

/// A key is a digest already: its first bytes spread well.
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::size_t hash = 0;
    std::memcpy(&hash, key.bytes.data(), sizeof hash);
    return hash;
  }
};

}  // namespace broach::cache
