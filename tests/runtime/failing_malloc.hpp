#pragma once

#include <cstdint>

namespace broach::test {

enum class Failing : std::uint8_t { kNothing, kNth, kFromNth };

/// Has allocations of this process fail, counted over all threads from this call on: the n-th
/// alone, or every one from the n-th on. `kNothing` counts only.
///
/// Every malloc, calloc, realloc and aligned form of it is counted, whoever calls: operator new,
/// the C library, a database.
void fail_allocations(Failing which, std::uint64_t n) noexcept;

/// How many there were since then.
std::uint64_t allocations_seen() noexcept;

}  // namespace broach::test
