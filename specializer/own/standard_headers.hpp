#pragma once

#include <memory>

#include "specializer/own/header_pack.hpp"

namespace broach::specializer::own {

/// What kernels use of C++'s standard headers, for compilers that have none: integer types, limits,
/// constants, and the names that run-time compilers know without a header (printf, assert,
/// memcpy). So a source that a toolkit's compiler takes comes in as it is.
///
/// cstdint, cstddef, climits, cfloat, cmath, cstdio, cassert, cstring, cstdlib and their C names.
std::shared_ptr<const HeaderPack> standard_headers();

}  // namespace broach::specializer::own
