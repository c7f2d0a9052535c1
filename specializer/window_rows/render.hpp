#pragma once

#include "broach/window_rows.hpp"
#include "specializer/family.hpp"
#include "specializer/target.hpp"

namespace broach::specializer {

/// The main source of each arithmetic.
///
/// Shapes:  served.
Rendered render_window_rows_chunk256(const WindowRowsShape& shape, const Target& target,
                                     const Variant& variant);
Rendered render_window_rows_mma32(const WindowRowsShape& shape, const Target& target,
                                  const Variant& variant);
Rendered render_window_rows_tile64(const WindowRowsShape& shape, const Target& target,
                                   const Variant& variant);

}  // namespace broach::specializer
