#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "specializer/plan.hpp"
#include "specializer/target.hpp"

namespace broach::specializer {

enum class CompilerKind : std::uint8_t { kNvrtc, kHiprtc, kHost };
std::string_view name_of(CompilerKind kind) noexcept;

/// A compiler as it was loaded, not as it was expected.
struct CompilerIdentity {
  CompilerKind kind = CompilerKind::kHost;
  std::string key_text;  ///< Goes into the key: name, version, build; never a path.
  std::string words;     ///< For people: "NVRTC 13.0.88 (build 36424714)".
  std::string path;      ///< Where it was found, for `doctor` only.
  Version toolkit;       ///< As NVRTC or hiprtc states it; none for a host compiler.
};

/// Where compilers are looked for and what one compile may use. The caller read the environment.
///
/// Units:   seconds and bytes as named; 0 takes the default.
struct CompilersOptions {
  std::filesystem::path worker;         ///< broach-rtc; empty: beside the program or library.
  std::filesystem::path nvrtc;          ///< A libnvrtc file; empty: the documented search.
  std::filesystem::path hiprtc;         ///< A libamdhip64/libhiprtc file; empty: the search.
  std::filesystem::path hiprtc_prefix;  ///< A directory of unpacked packages, own loader included.
  std::filesystem::path cuda_include;   ///< CUDA's headers; empty: beside NVRTC, usual places.
  std::filesystem::path hip_include;    ///< ROCm's headers; empty: beside hiprtc, usual places.
  std::filesystem::path host_compiler;  ///< empty: c++, g++, clang++ on PATH.
  std::string search_path;              ///< PATH; default /usr/local/bin:/usr/bin:/bin.
  /// Where workers' private directories may be made, best first; default /tmp, /var/tmp, /dev/shm.
  std::vector<std::filesystem::path> scratch;
  std::uint32_t jobs = 0;                ///< Workers a compiler at most; default: cores.
  std::uint32_t time_limit_s = 0;        ///< Default 300.
  std::uint64_t memory_limit_bytes = 0;  ///< Default 8 GiB; never more than this process's own.
};

struct CompileOutput {
  std::vector<std::byte> binary;
  std::string log;
  std::uint32_t compile_ms = 0;
  CompilerIdentity compiler;              ///< As the worker that compiled it had it loaded.
  std::vector<std::string> symbols = {};  ///< What the binary calls each plan entry.
};

/// A compiler as `doctor` shows it.
struct CompilerStatus {
  CompilerKind kind = CompilerKind::kHost;
  std::optional<CompilerIdentity> found;
  std::string why;                   ///< Why there is none, or what is odd about it.
  std::vector<std::string> tried;    ///< Paths in search order.
  std::vector<std::string> targets;  ///< What it says it can compile for, where it says.
};

/// Remembers small facts between processes (a compiler's identity by its ELF build id).
struct Memo {
  std::function<std::optional<std::string>(std::string_view name)> find;
  std::function<void(std::string_view name, std::string_view value)> remember;
};

/// Run-time compilers, each in worker processes that live on between compiles.
///
/// Nothing is opened until it is asked for, and a compiler that aborts takes its worker with it,
/// never this process.
///
/// Threads: any; compiles run side by side, one a worker.
class Compilers {
 public:
  explicit Compilers(CompilersOptions options, Memo memo = {});
  ~Compilers();

  /// The identity of the compiler that would serve a target.
  ///
  /// Errors:  kCompilerMissing with the paths tried.
  Result<CompilerIdentity> identity(const Target& target);

  /// Compiles a plan.
  ///
  /// The output's `compiler` is what compiled it. Where that differs from the identity that a key
  /// was made with (the compiler was replaced meanwhile), the binary belongs to another key;
  /// identity() gives the new one from then on.
  ///
  /// Errors:  kCompileFailed with the whole log and the options; kCompilerDied with target,
  ///          compiler and advice; kTimedOut; kOutOfMemory; kCompilerMissing.
  Result<CompileOutput> compile(const Plan& plan);

  std::vector<CompilerStatus> status();

  /// What one compile may use, as "300 s, 8192 MiB": a failure under other limits may be none.
  std::string limits() const;

  /// Ends what is under way and lets nothing more begin, from any thread: whoever waits for a
  /// compile has an error at once (kIo).
  void close() noexcept;

  /// The same of the compiler that would serve a target alone, which is opened for it.
  CompilerStatus status(const Target& target);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace broach::specializer
