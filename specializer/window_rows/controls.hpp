#pragma once

#include <string_view>

#include "broach/window_rows.hpp"
#include "specializer/family.hpp"

namespace broach::specializer::window_rows {

/// Whether the kernel of a shape can be planted with a fault.
///
/// Shapes:  `shape` is resolved: its arithmetic and form say which kernel it is.
bool has_control(std::string_view control, const WindowRowsShape& shape);

/// What a planted fault needs that a shape lacks, as the shape's text ("p32=on"), or nothing.
/// Without it the fault is out of reach: the kernel would be the sound one under the fault's name.
///
/// A generic kernel reads window and layout at run time, so that its faults reach any of them.
std::string_view missing_for(std::string_view control, const WindowRowsShape& shape,
                             Switch generic);

}  // namespace broach::specializer::window_rows
