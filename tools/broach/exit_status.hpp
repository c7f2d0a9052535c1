#pragma once

#include "broach/result.hpp"

namespace broach::tool {

/// What the command ends with. Scripts rely on the numbers; `broach help exit-status` prints them.
enum class ExitStatus : int {
  kSuccess = 0,      ///< Everything that was asked for holds.
  kDoesNotHold = 1,  ///< It ran, and something asked for does not hold (damage, a failed compile).
  kBadInput = 2,     ///< The command line, a shape, a target or a manifest cannot be used.
  kMissing = 3,      ///< A key, device, compiler or driver that was named is not there.
  kStorage = 4,      ///< A directory, bundle or output cannot be read, trusted or written.
  kInternal = 5,     ///< A defect in broach.
};

/// The status of a command that ended with an error.
constexpr ExitStatus exit_status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
      return ExitStatus::kBadInput;
    case ErrorCode::kNotFound:
    case ErrorCode::kCompilerMissing:
      return ExitStatus::kMissing;
    case ErrorCode::kIo:
    case ErrorCode::kDenied:
      return ExitStatus::kStorage;
    case ErrorCode::kInternal:
    case ErrorCode::kOutOfMemory:
      return ExitStatus::kInternal;
    case ErrorCode::kCompileFailed:
    case ErrorCode::kCompilerDied:
    case ErrorCode::kTimedOut:
    case ErrorCode::kDamaged:
    case ErrorCode::kDriver:
    case ErrorCode::kLimitExceeded:
    case ErrorCode::kNotWarmed:
    case ErrorCode::kCapturing:
      return ExitStatus::kDoesNotHold;
  }
  return ExitStatus::kInternal;
}

/// The table that `broach help exit-status` and every `--help` show.
inline constexpr char kExitStatusHelp[] =
    "Exit status:\n"
    "  0  everything that was asked for holds\n"
    "  1  it ran, and something asked for does not hold: damage, a failed compile, a wrong output\n"
    "  2  the command line, a shape, a target or a manifest cannot be used\n"
    "  3  a key, device, compiler or driver that was named is not there\n"
    "  4  a cache directory, a bundle or an output cannot be read, trusted or written\n"
    "  5  a defect in broach, or no memory";

}  // namespace broach::tool
