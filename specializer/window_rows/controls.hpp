#pragma once

#include <string_view>

#include "broach/types.hpp"
#include "specializer/family.hpp"

namespace broach::specializer::window_rows {

/// What a planted fault needs that a shape does not have, as the shape's words ("p32=on"), or
/// nothing. Without it the fault is out of reach: the kernel would be the sound one under the
/// fault's name.
///
/// A generic kernel reads window and layout at run time, so that its faults reach any of them.
std::string_view missing_for(std::string_view control, const WindowRowsShape& shape,
                             Switch generic);

}  // namespace broach::specializer::window_rows
