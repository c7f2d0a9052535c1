#pragma once

#include <cstdint>

namespace broach::contract {

/// How much a contract run covers: enough that two cores are done with it in two minutes, compilers
/// included, or every case. A quick sweep still has every kernel kind, head_dim, layout and option,
/// and every planted fault; a case belongs to the whole sweep alone where it tries again what
/// another case does, of its own arithmetic or of one that differs in its exponential alone.
enum class Sweep : std::uint8_t { kQuick, kWhole };

}  // namespace broach::contract
