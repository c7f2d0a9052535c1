#pragma once

#include "broach/sparse_rows.hpp"
#include "specializer/family.hpp"
#include "specializer/target.hpp"

namespace broach::specializer::sparse_rows {

/// Shapes:  served.
Rendered render(const SparseRowsShape& shape, const Target& target, const Variant& variant);

}  // namespace broach::specializer::sparse_rows
