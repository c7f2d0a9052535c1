#pragma once

#include <sys/resource.h>

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
/// cases that a forked copy of the parent holds the socket open and that this process is stopped.
///
/// Shapes:  returns false where no thread can be started: the caller then calls end_with_parent
///          itself once it finds the socket hung up.
bool die_with_parent(int socket, std::string scratch);

/// Removes `scratch`, which may be empty, and kills this process and its children.
[[noreturn]] void end_with_parent(const std::string& scratch);

/// Marks `scratch` as in use until this process ends, so that no other sweeps it away.
void hold(const std::string& scratch);

/// While it lives, this process opens no file: every try fails. For a compiler that has all it
/// needs in memory, so that it reads nothing that the key does not hold, an absolute include
/// included.
///
/// Threads: one at a time.
class NoNewFiles {
 public:
  NoNewFiles() noexcept;
  ~NoNewFiles();
  NoNewFiles(const NoNewFiles&) = delete;
  NoNewFiles& operator=(const NoNewFiles&) = delete;

 private:
  rlimit before_{};
  bool lowered_ = false;
};

/// Bounds the address space, and what any file may grow to, a log in memory as well; 0 bounds no
/// address space. Limits that are lower already stay. No core file is written, however the compiler
/// ends.
Result<void> limit_memory(std::uint64_t bytes);

}  // namespace broach::rtc
