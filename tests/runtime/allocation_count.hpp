#pragma once

#include <cstdint>

namespace broach::test {

/// How often the calling thread has called `operator new` in this program.
std::uint64_t allocation_count() noexcept;

}  // namespace broach::test
