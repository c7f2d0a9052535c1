#include "specializer/compile/toolchain.hpp"

#include <chrono>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "specializer/compile/failures.hpp"
#include "specializer/compile/search.hpp"

namespace broach::specializer {
namespace {

namespace fs = std::filesystem;

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

// What was found and may not run explains more than what was not found.
std::string refused_words(const Candidates& found) {
  return found.refused.empty() ? "" : "; " + found.refused.front();
}

std::string joined(std::span<const std::string> lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// What the binary calls each entry: the names that were asked for came in their order.
std::vector<std::string> symbols_of(const Plan& plan, std::vector<std::string> lowered) {
  std::vector<std::string> symbols;
  auto next = lowered.begin();
  for (const KernelEntry& entry : plan.entries) {
    symbols.push_back(entry.expression.empty() ? entry.function : std::move(*next++));
  }
  return symbols;
}

rtc::Deadline deadline_of(const CompilersOptions& options) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(options.time_limit_s);
}

}  // namespace

Toolchain::Toolchain(CompilerKind kind, const CompilersOptions& options, const IdentityMemo& memo,
                     WorkerRegistry& registry)
    : kind_(kind), options_(options), memo_(memo), registry_(registry), pool_(options.jobs, [this] {
        return start();
      }) {}

Result<CompilerIdentity> Toolchain::identity() {
  {
    const std::lock_guard lock(mutex_);
    if (identity_) return *identity_;
  }
  for (const fs::path& file : find_compiler(kind_, options_, Extent::kFirst).files) {
    if (auto known = memo_.find(kind_, file)) return settle(std::move(*known));
  }
  auto lease = pool_.acquire();
  if (!lease) return std::move(lease).error();
  return settle(identity_of(kind_, (*lease)->opened));
}

Result<CompileOutput> Toolchain::compile(const Plan& plan) {
  auto lease = pool_.acquire();
  if (!lease) {
    // Whatever keeps a worker from its start, it is not the plan.
    Error error = std::move(lease).error();
    if (error.reason == Reason::kNone) error.reason = Reason::kMachine;
    return error;
  }
  const CompilerIdentity compiler = identity_of(kind_, (*lease)->opened);
  adopt(compiler);
  rtc::CompileRequest request;
  request.arch = plan.target.arch;
  for (const SourceFile& source : plan.sources) {
    request.sources.push_back({source.name, source.bytes});
  }
  request.options = plan.options;
  for (const KernelEntry& entry : plan.entries) {
    if (!entry.expression.empty()) request.name_expressions.push_back(entry.expression);
  }
  const Attempt attempt{plan, options_, compiler, (*lease)->opened.targets};
  auto answer = (*lease)->process->exchange(request, deadline_of(options_));
  if (!answer) return lost(attempt, std::move(answer).error());
  auto* compiled = std::get_if<rtc::Compiled>(&*answer);
  if (compiled != nullptr && compiled->lowered_names.size() == request.name_expressions.size()) {
    CompileOutput output;
    output.binary.resize(compiled->binary.size());
    std::memcpy(output.binary.data(), compiled->binary.data(), compiled->binary.size());
    output.log = std::move(compiled->log);
    output.compile_ms = compiled->compile_ms;
    output.symbols = symbols_of(plan, std::move(compiled->lowered_names));
    output.compiler = compiler;
    return output;
  }
  if (auto* failed = std::get_if<rtc::Failed>(&*answer)) {
    return refused(attempt, std::move(*failed));
  }
  return lost(attempt, Error{ErrorCode::kCompilerDied, "answered with another message", ""});
}

CompilerStatus Toolchain::status() {
  CompilerStatus status;
  status.kind = kind_;
  status.tried = find_compiler(kind_, options_, Extent::kAll).tried;
  auto lease = pool_.acquire();
  if (!lease) {
    status.why = lease.error().message;
    return status;
  }
  status.found = identity_of(kind_, (*lease)->opened);
  status.targets = (*lease)->opened.targets;
  if (adopt(*status.found)) status.why = "it was replaced since it was asked for its identity";
  return status;
}

// Whichever thread is first decides; the others take its answer.
CompilerIdentity Toolchain::settle(CompilerIdentity identity) {
  const std::lock_guard lock(mutex_);
  if (!identity_) identity_ = std::move(identity);
  return *identity_;
}

// A compiler was replaced on disk, or a memo was stale: from here on its new identity holds, and
// workers of the old one go.
bool Toolchain::adopt(const CompilerIdentity& loaded) {
  {
    const std::lock_guard lock(mutex_);
    const bool same = !identity_ || identity_->key_text == loaded.key_text;
    identity_ = loaded;
    if (same) return false;
  }
  pool_.retire();
  return true;
}

Result<Worker> Toolchain::start() {
  const Candidates workers = find_worker(options_);
  if (workers.files.empty()) {
    return Error{ErrorCode::kCompilerMissing,
                 "the compile worker broach-rtc is not among " +
                     std::to_string(workers.tried.size()) +
                     " places; name it (BROACH_WORKER) or install it beside the library" +
                     refused_words(workers),
                 joined(workers.tried)};
  }
  const Candidates found = find_compiler(kind_, options_, Extent::kAll);
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
                   std::string(remedy_for(kind_)) + refused_words(found),
               reasons + joined(found.tried)};
}

Result<Worker> Toolchain::open(const fs::path& program, const fs::path& file) const {
  WorkerLaunch launch;
  launch.registry = &registry_;
  // NVRTC writes no files.
  if (kind_ != CompilerKind::kNvrtc) launch.scratch_parents = options_.scratch;
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
  auto answer = (*process)->exchange(request, deadline_of(options_));
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

}  // namespace broach::specializer
