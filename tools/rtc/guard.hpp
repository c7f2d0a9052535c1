#pragma once

#include <cstdint>
#include <string>

#include "broach/result.hpp"

namespace broach::rtc {

/// Makes the socket on standard input this process's only link: every other descriptor it was
/// started with is closed, standard input becomes empty, standard output joins standard error.
///
/// Shapes:  returns the socket's new descriptor.
/// Errors:  kInvalidArgument when standard input is no socket; kIo.
Result<int> take_socket();

/// Ends this process and its children when the process that started it dies, and removes
/// `scratch` then: by the hang-up of `socket`, and by the kernel's parent-death signal for the
/// case that a forked copy of the parent holds the socket open.
void die_with_parent(int socket, std::string scratch);

/// Bounds the address space; 0 sets none. No core file is written, however the compiler ends.
Result<void> limit_memory(std::uint64_t bytes);

}  // namespace broach::rtc
