#include "specializer/compilers.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <thread>

#include "specializer/compile/elf_build_id.hpp"
#include "specializer/compile/identity.hpp"
#include "specializer/compile/search.hpp"
#include "specializer/compile/worker_pool.hpp"

namespace broach::specializer {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kDefaultTimeLimitS = 300;
constexpr std::uint64_t kDefaultMemoryLimitBytes = std::uint64_t{8} << 30;

constexpr std::array<CompilerKind, 3> kKinds = {CompilerKind::kNvrtc, CompilerKind::kHiprtc,
                                                CompilerKind::kHost};

CompilersOptions with_defaults(CompilersOptions options) {
  if (options.jobs == 0) options.jobs = std::max(1U, std::thread::hardware_concurrency());
  if (options.time_limit_s == 0) options.time_limit_s = kDefaultTimeLimitS;
  if (options.memory_limit_bytes == 0) options.memory_limit_bytes = kDefaultMemoryLimitBytes;
  if (options.scratch.empty()) options.scratch = "/tmp";
  return options;
}

CompilerKind kind_for(const Target& target) {
  switch (target.vendor) {
    case Vendor::kNvidia:
      return CompilerKind::kNvrtc;
    case Vendor::kAmd:
      return CompilerKind::kHiprtc;
    case Vendor::kHost:
      break;
  }
  return CompilerKind::kHost;
}

std::string_view words_for(CompilerKind kind) {
  switch (kind) {
    case CompilerKind::kNvrtc:
      return "NVRTC";
    case CompilerKind::kHiprtc:
      return "hiprtc";
    case CompilerKind::kHost:
      break;
  }
  return "host C++ compiler";
}

std::string_view remedy_for(CompilerKind kind) {
  switch (kind) {
    case CompilerKind::kNvrtc:
      return "install the CUDA toolkit's NVRTC or name its file (BROACH_NVRTC)";
    case CompilerKind::kHiprtc:
      return "install hiprtc, name its file (BROACH_HIPRTC), or fetch one into a directory with "
             "tools/fetch-hiprtc and name that (BROACH_HIPRTC_PREFIX)";
    case CompilerKind::kHost:
      break;
  }
  return "install a C++ compiler or name one (BROACH_CXX)";
}

std::string joined(std::span<const std::string> lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string seconds(std::uint32_t value) { return std::to_string(value) + " s"; }

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// What compilers print when an allocation fails under the memory limit.
bool speaks_of_memory(std::string_view text) {
  constexpr std::array<std::string_view, 5> kSigns = {"out of memory", "Out of memory", "bad_alloc",
                                                      "memory exhausted", "Cannot allocate memory"};
  return std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view sign) {
    return text.find(sign) != std::string_view::npos;
  });
}

/// One kind of compiler: where it is, who it is, its workers.
class Toolchain {
 public:
  Toolchain(CompilerKind kind, const CompilersOptions& options, const IdentityMemo& memo)
      : kind_(kind),
        options_(options),
        memo_(memo),
        pool_(options.jobs, [this] { return start(); }) {}

  Result<CompilerIdentity> identity() {
    {
      const std::lock_guard lock(mutex_);
      if (identity_) return *identity_;
    }
    for (const fs::path& file : find_compiler(kind_, options_).files) {
      if (auto known = memo_.find(kind_, file)) return settle(std::move(*known));
    }
    auto lease = pool_.acquire();
    if (!lease) return std::move(lease).error();
    return settle(identity_of(kind_, (*lease)->opened));
  }

  Result<CompileOutput> compile(const Plan& plan) {
    auto lease = pool_.acquire();
    if (!lease) return std::move(lease).error();
    const CompilerIdentity compiler = identity_of(kind_, (*lease)->opened);
    if (auto same = confirm(compiler); !same) return same.error();
    rtc::CompileRequest request;
    request.arch = plan.target.arch;
    for (const SourceFile& source : plan.sources) {
      request.sources.push_back({source.name, source.bytes});
    }
    request.options = plan.options;
    auto answer = (*lease)->process->exchange(request, deadline());
    if (!answer) return lost(plan, compiler, (*lease)->opened.targets, std::move(answer).error());
    if (auto* compiled = std::get_if<rtc::Compiled>(&*answer)) {
      CompileOutput output;
      output.binary.resize(compiled->binary.size());
      std::memcpy(output.binary.data(), compiled->binary.data(), compiled->binary.size());
      output.log = std::move(compiled->log);
      output.compile_ms = compiled->compile_ms;
      output.compiler = compiler;
      return output;
    }
    if (auto* failed = std::get_if<rtc::Failed>(&*answer)) {
      return refused(plan, compiler, std::move(*failed));
    }
    return lost(plan, compiler, (*lease)->opened.targets,
                Error{ErrorCode::kCompilerDied, "answered with another message", ""});
  }

  CompilerStatus status() {
    CompilerStatus status;
    status.kind = kind_;
    status.tried = find_compiler(kind_, options_).tried;
    auto lease = pool_.acquire();
    if (!lease) {
      status.why = lease.error().message;
      return status;
    }
    status.found = identity_of(kind_, (*lease)->opened);
    status.targets = (*lease)->opened.targets;
    if (auto same = confirm(*status.found); !same) status.why = same.error().message;
    return status;
  }

 private:
  rtc::Deadline deadline() const {
    return std::chrono::steady_clock::now() + std::chrono::seconds(options_.time_limit_s);
  }

  // Whichever thread is first decides; the others take its answer.
  CompilerIdentity settle(CompilerIdentity identity) {
    const std::lock_guard lock(mutex_);
    if (!identity_) identity_ = std::move(identity);
    return *identity_;
  }

  // Keys may have been made with an identity that a compiler replaced on disk no longer has: what
  // such a worker compiles must not be filed under them.
  Result<void> confirm(const CompilerIdentity& loaded) {
    const CompilerIdentity settled = settle(loaded);
    if (settled.key_text == loaded.key_text) return {};
    {
      const std::lock_guard lock(mutex_);
      identity_ = loaded;
    }
    pool_.retire();
    return Error{ErrorCode::kCompilerMissing,
                 "the compiler is " + loaded.words + " now and was " + settled.words +
                     " when the key was made; ask again",
                 loaded.path};
  }

  Result<Worker> start() {
    const Candidates workers = find_worker(options_);
    if (workers.files.empty()) {
      return Error{ErrorCode::kCompilerMissing,
                   "the compile worker broach-rtc is not among " +
                       std::to_string(workers.tried.size()) +
                       " places; name it (BROACH_WORKER) or install it beside the library",
                   joined(workers.tried)};
    }
    const Candidates found = find_compiler(kind_, options_);
    std::string reasons;
    for (const fs::path& file : found.files) {
      auto worker = open(workers.files.front(), file);
      if (worker) {
        memo_.remember(kind_, file, worker->opened);
        return worker;
      }
      // A worker that could not be started, died or hung says nothing about the other files.
      if (found.files.size() == 1 || worker.error().code != ErrorCode::kCompilerMissing) {
        return std::move(worker).error();
      }
      reasons += file.string() + ": " + worker.error().message + "\n" + worker.error().detail;
    }
    return Error{ErrorCode::kCompilerMissing,
                 "no " + std::string(words_for(kind_)) + " could be opened (" +
                     std::to_string(found.tried.size()) + " paths tried); " +
                     std::string(remedy_for(kind_)),
                 reasons + joined(found.tried)};
  }

  Result<Worker> open(const fs::path& program, const fs::path& file) const {
    WorkerLaunch launch;
    launch.scratch_parent = options_.scratch;
    // Nothing of the caller's environment: compilers read options out of it.
    launch.environment = {"LC_ALL=C", "PATH=" + options_.search_path, "AMD_COMGR_CACHE=0"};
    if (kind_ == CompilerKind::kHiprtc && !options_.hiprtc_prefix.empty()) {
      auto command = prefix_command(options_.hiprtc_prefix);
      if (!command) return std::move(command).error();
      launch.command = std::move(*command);
    } else if (kind_ != CompilerKind::kHost) {
      // So that a toolkit outside the loader's directories finds its own companions.
      launch.environment.push_back("LD_LIBRARY_PATH=" + file.parent_path().string());
    }
    launch.command.push_back(program.string());
    auto process = WorkerProcess::start(launch);
    if (!process) return std::move(process).error();
    rtc::OpenRequest request;
    request.engine = static_cast<rtc::Engine>(kind_);
    request.path = file.string();
    request.memory_limit_bytes = options_.memory_limit_bytes;
    request.scratch = (*process)->scratch().string();
    auto answer = (*process)->exchange(request, deadline());
    if (!answer) {
      Error error = std::move(answer).error();
      error.message = "the worker that opened " + file.string() + " " + error.message +
                      " (memory limit " + mebibytes(options_.memory_limit_bytes) + ")";
      return error;
    }
    if (auto* opened = std::get_if<rtc::Opened>(&*answer)) {
      return Worker{std::move(*process), std::move(*opened), 0};
    }
    if (auto* failed = std::get_if<rtc::Failed>(&*answer)) {
      return Error{failed->code, std::move(failed->message), std::move(failed->detail)};
    }
    return Error{ErrorCode::kCompilerDied,
                 "the worker that opened " + file.string() + " answered with another message", ""};
  }

  std::string subject(const Plan& plan, const CompilerIdentity& compiler) const {
    return plan.family + " for " + plan.target.name + ": " + compiler.words;
  }

  std::string out_of_memory_words(const Plan& plan, const CompilerIdentity& compiler) const {
    return subject(plan, compiler) + " ran out of memory under the limit of " +
           mebibytes(options_.memory_limit_bytes) +
           "; raise it (BROACH_COMPILE_MEMORY_LIMIT) or free memory";
  }

  // The worker lives; the compiler said no.
  Error refused(const Plan& plan, const CompilerIdentity& compiler, rtc::Failed failed) const {
    if (failed.code == ErrorCode::kOutOfMemory || speaks_of_memory(failed.detail)) {
      return {ErrorCode::kOutOfMemory, out_of_memory_words(plan, compiler),
              std::move(failed.detail)};
    }
    Error error{failed.code, subject(plan, compiler) + ": " + failed.message,
                std::move(failed.detail)};
    if (!error.detail.empty() && error.detail.back() != '\n') error.detail += '\n';
    error.detail += "shape: " + plan.shape_json + "\noptions:";
    for (const std::string& option : plan.options) error.detail += " " + option;
    error.detail += '\n';
    return error;
  }

  // hiprtc aborts on an architecture that its comgr does not know.
  std::string advice(const Plan& plan, const std::vector<std::string>& targets) const {
    if (kind_ != CompilerKind::kHiprtc) return "another version of the compiler may accept it";
    const std::string arch = plan.target.arch.substr(0, plan.target.arch.find(':'));
    const bool known = std::find(targets.begin(), targets.end(), arch) != targets.end();
    return (known ? "another hiprtc may accept it: "
                  : "it does not know " + arch + ", use a newer hiprtc: ") +
           "name one (BROACH_HIPRTC) or fetch one with tools/fetch-hiprtc (BROACH_HIPRTC_PREFIX)";
  }

  // The worker is dead.
  Error lost(const Plan& plan, const CompilerIdentity& compiler,
             const std::vector<std::string>& targets, Error why) const {
    if (why.code == ErrorCode::kTimedOut) {
      why.message = subject(plan, compiler) + " was stopped after " +
                    seconds(options_.time_limit_s) +
                    "; raise the limit (BROACH_COMPILE_TIME_LIMIT)";
      return why;
    }
    if (why.code != ErrorCode::kCompilerDied) {
      why.message = subject(plan, compiler) + ": " + why.message;
      return why;
    }
    if (speaks_of_memory(why.detail)) {
      return {ErrorCode::kOutOfMemory, out_of_memory_words(plan, compiler), std::move(why.detail)};
    }
    const std::string limit = " (memory limit " + mebibytes(options_.memory_limit_bytes) + "); ";
    why.message = subject(plan, compiler) + " took its worker down: " + why.message + limit +
                  advice(plan, targets);
    return why;
  }

  const CompilerKind kind_;
  const CompilersOptions& options_;
  const IdentityMemo& memo_;
  std::mutex mutex_;
  std::optional<CompilerIdentity> identity_;
  WorkerPool pool_;
};

}  // namespace

struct Compilers::State {
  State(CompilersOptions chosen, Memo kept)
      : options(with_defaults(std::move(chosen))), memo(std::move(kept)) {}

  Toolchain& of(CompilerKind kind) {
    return kind == CompilerKind::kNvrtc ? nvrtc : kind == CompilerKind::kHiprtc ? hiprtc : host;
  }

  const CompilersOptions options;
  const IdentityMemo memo;
  Toolchain nvrtc{CompilerKind::kNvrtc, options, memo};
  Toolchain hiprtc{CompilerKind::kHiprtc, options, memo};
  Toolchain host{CompilerKind::kHost, options, memo};
};

Compilers::Compilers(CompilersOptions options, Memo memo)
    : state_(std::make_unique<State>(std::move(options), std::move(memo))) {}

Compilers::~Compilers() = default;

Result<CompilerIdentity> Compilers::identity(const Target& target) {
  return state_->of(kind_for(target)).identity();
}

Result<CompileOutput> Compilers::compile(const Plan& plan) try {
  return state_->of(kind_for(plan.target)).compile(plan);
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::kOutOfMemory,
               plan.family + " for " + plan.target.name + ": no memory left in this process", ""};
}

std::vector<CompilerStatus> Compilers::status() {
  std::vector<CompilerStatus> all;
  for (const CompilerKind kind : kKinds) all.push_back(state_->of(kind).status());
  return all;
}

}  // namespace broach::specializer
