#pragma once

#include "specializer/family.hpp"

namespace broach::specializer::sparse_rows {

/// Attention over the blocks of keys that an indexer selected for each row.
const Family& family() noexcept;

}  // namespace broach::specializer::sparse_rows
