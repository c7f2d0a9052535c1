#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace broach {

/// The kinds of failure a caller can tell apart. Values are append-only: the C ABI exposes them.
enum class ErrorCode : std::int32_t {
  kInvalidArgument =
      1,               ///< A value the caller passed cannot be served; the message says what would.
  kUnsupported = 2,    ///< A well-formed request that this target or build does not offer.
  kNotFound = 3,       ///< A named thing does not exist.
  kCompileFailed = 4,  ///< The compiler rejected the source; `detail` holds its whole log.
  kCompilerMissing =
      5,  ///< No compiler for the target could be opened; `detail` lists what was tried.
  kCompilerDied = 6,    ///< The compile worker aborted, was killed, or broke the protocol.
  kTimedOut = 7,        ///< A time limit passed.
  kIo = 8,              ///< The operating system refused a file operation.
  kDamaged = 9,         ///< Bytes that should be ours do not check out.
  kDenied = 10,         ///< A safety rule (owner, mode, signature) forbids the use.
  kDriver = 11,         ///< The device driver reported an error.
  kLimitExceeded = 12,  ///< A launch cannot fit the device; the message has limit and number.
  kNotWarmed = 13,      ///< First-use policy `never` met a shape that no layer holds.
  kCapturing = 14,      ///< The stream is capturing and the request would build or load.
  kOutOfMemory = 15,    ///< An allocation failed.
  kInternal = 16,       ///< A defect in broach.
};

/// The enumerator's name without the `k`, in lower snake case: "invalid_argument".
constexpr std::string_view name_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kCompileFailed:
      return "compile_failed";
    case ErrorCode::kCompilerMissing:
      return "compiler_missing";
    case ErrorCode::kCompilerDied:
      return "compiler_died";
    case ErrorCode::kTimedOut:
      return "timed_out";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kDamaged:
      return "damaged";
    case ErrorCode::kDenied:
      return "denied";
    case ErrorCode::kDriver:
      return "driver";
    case ErrorCode::kLimitExceeded:
      return "limit_exceeded";
    case ErrorCode::kNotWarmed:
      return "not_warmed";
    case ErrorCode::kCapturing:
      return "capturing";
    case ErrorCode::kOutOfMemory:
      return "out_of_memory";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

/// Which of the failures that share a code it is, where a caller acts on the difference. Most
/// errors have none: their code says enough.
enum class Reason : std::uint8_t {
  kNone,
  kUnsafe,              ///< kDenied: another user could have written it.
  kUnsigned,            ///< kDenied: nobody signed it.
  kUntrusted,           ///< kDenied: signed by a key that is not trusted.
  kForged,              ///< kDenied: the bytes are not what was signed.
  kNewerFormat,         ///< kUnsupported: a later version of broach wrote it.
  kNoKernel,            ///< kUnsupported: no kernel of the family serves the shape on the target.
  kReadOnlyFileSystem,  ///< kIo: nothing can be written there, now or later.
  kClosed,              ///< The peer closed the connection.
  kTooLong,             ///< kLimitExceeded: the message does not fit its protocol's bounds.
  kMachine,             ///< The machine's trouble of the moment, whatever was asked: nobody
                        ///< remembers it.
  kCompilerChanged,     ///< kCompilerMissing: another compiler took the place of the expected one.
  kPending,             ///< kNotWarmed: it is being compiled in the background.
};

/// The enumerator's name as name_of(ErrorCode) has it; empty for kNone.
constexpr std::string_view name_of(Reason reason) noexcept {
  switch (reason) {
    case Reason::kNone:
      return "";
    case Reason::kUnsafe:
      return "unsafe";
    case Reason::kUnsigned:
      return "unsigned";
    case Reason::kUntrusted:
      return "untrusted";
    case Reason::kForged:
      return "forged";
    case Reason::kNewerFormat:
      return "newer_format";
    case Reason::kNoKernel:
      return "no_kernel";
    case Reason::kReadOnlyFileSystem:
      return "read_only_file_system";
    case Reason::kClosed:
      return "closed";
    case Reason::kTooLong:
      return "too_long";
    case Reason::kMachine:
      return "machine";
    case Reason::kCompilerChanged:
      return "compiler_changed";
    case Reason::kPending:
      return "pending";
  }
  return "";
}

/// What went wrong: one line for people, and the long form (a compiler's log, the paths tried).
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  ///< One line: what was tried, on which object, what would work.
  std::string detail;   ///< May be long and have many lines; may be empty.
  Reason reason = Reason::kNone;
};

namespace internal {

/// Ends the process after a line on standard error.
[[noreturn]] inline void misused_result(const char* what, const Error* error) noexcept {
  if (error == nullptr) {
    std::fprintf(stderr, "broach: %s\n", what);
  } else {
    const std::string_view code = name_of(error->code);
    std::fprintf(stderr, "broach: %s: %.*s: %s\n", what, static_cast<int>(code.size()), code.data(),
                 error->message.c_str());
  }
  std::abort();
}

}  // namespace internal

/// A value or the reason there is none.
///
/// Errors:  `value()` on an error and `error()` on a value are programming faults: they write a
/// line
///          to standard error, with the error that is there, and abort.
/// Threads: as safe as T.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  T& value() & noexcept { return demand_value(), *std::get_if<0>(&state_); }
  const T& value() const& noexcept { return demand_value(), *std::get_if<0>(&state_); }
  T&& value() && noexcept { return demand_value(), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }
  T&& operator*() && noexcept { return std::move(*this).value(); }
  T* operator->() noexcept { return &value(); }
  const T* operator->() const noexcept { return &value(); }

  const Error& error() const& noexcept { return demand_error(), *std::get_if<1>(&state_); }
  Error&& error() && noexcept { return demand_error(), std::move(*std::get_if<1>(&state_)); }

 private:
  void demand_value() const noexcept {
    if (ok()) return;
    internal::misused_result("a Result's value was used, and it holds an error",
                             std::get_if<1>(&state_));
  }
  void demand_error() const noexcept {
    if (ok()) internal::misused_result("a Result's error was used, and it holds a value", nullptr);
  }

  std::variant<T, Error> state_;
};

/// Success without a value, or the reason it failed.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }

  const Error& error() const& noexcept { return demand_error(), *error_; }
  Error&& error() && noexcept { return demand_error(), std::move(*error_); }

 private:
  void demand_error() const noexcept {
    if (ok()) internal::misused_result("a Result's error was used, and it holds success", nullptr);
  }

  std::optional<Error> error_;
};

}  // namespace broach
