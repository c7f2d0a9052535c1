#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace broach::cache::test {

/// Which system calls of this process fail, and how. The program that links fault_calls.cpp has its
/// own open, write, fsync …, which every library in it uses too.
struct Fault {
  std::string_view call;  ///< "openat"
  int nth = 1;            ///< The first call that fails.
  int error = 0;          ///< errno of the failure.
  enum class Span { kOnce, kFromThenOn } span = Span::kOnce;
  /// Whether a call that is said to have failed was done: a network file system may lose the
  /// answer.
  enum class Effect { kNone, kDone } effect = Effect::kNone;
  /// What happens just before the call, which then succeeds: another process's deed, or a death.
  /// Empty: the call fails.
  std::function<void()> meanwhile = {};
};

/// The calls that can be made to fail.
inline constexpr std::string_view kFaultyCalls[] = {
    "open",      "openat", "mkdir",     "mkdirat",  "read",     "pread",     "write",
    "pwrite",    "fsync",  "rename",    "renameat", "unlink",   "unlinkat",  "flock",
    "fstat",     "stat",   "fstatat",   "futimens", "fchmodat", "ftruncate", "faccessat",
    "fdatasync", "fcntl",  "fdopendir", "readdir"};

/// Those by which a remote is asked.
inline constexpr std::string_view kNetworkCalls[] = {"socket", "connect",    "poll",      "recv",
                                                     "send",   "getsockopt", "setsockopt"};

void arm(const Fault& fault);

/// Sets this process's wall clock off by so much from then on. Files are dated by the kernel, whose
/// clock stays.
void set_clock_off(std::int64_t seconds);

/// Lets every call through again; says how often a call was made to fail.
int disarm();

}  // namespace broach::cache::test
