#pragma once

#include "specializer/family.hpp"

namespace broach::specializer::window_rows {

/// Sliding-window or full GQA attention over a KV cache.
const Family& family() noexcept;

}  // namespace broach::specializer::window_rows
