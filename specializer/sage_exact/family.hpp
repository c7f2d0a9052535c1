#pragma once

#include "specializer/family.hpp"

namespace broach::specializer::sage_exact {

/// Attention with int8 q and k and E4M3 p and v, byte for byte its reference's.
const Family& family() noexcept;

}  // namespace broach::specializer::sage_exact
