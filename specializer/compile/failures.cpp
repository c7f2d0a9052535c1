#include "specializer/compile/failures.hpp"

#include <algorithm>
#include <string_view>

#include "specializer/compile/trouble.hpp"

namespace broach::specializer {
namespace {

std::string subject(const Attempt& attempt) {
  return attempt.plan.family + " for " + attempt.plan.target.name + ": " + attempt.compiler.words;
}

Error out_of_memory(const Attempt& attempt, std::string detail) {
  return {ErrorCode::kOutOfMemory,
          subject(attempt) + " ran out of memory under the limit of " +
              mebibytes(attempt.options.memory_limit_bytes) +
              "; raise it (BROACH_COMPILE_MEMORY_LIMIT, and ulimit -v) or free memory",
          std::move(detail)};
}

std::string advice(const Attempt& attempt) {
  if (attempt.compiler.kind != CompilerKind::kHiprtc) {
    return "another version of the compiler may accept it";
  }
  // hiprtc aborts on an architecture that its comgr does not know.
  const std::string& full = attempt.plan.target.arch;
  const std::string arch = full.substr(0, full.find(':'));
  const auto& targets = attempt.targets;
  const bool known = std::find(targets.begin(), targets.end(), arch) != targets.end();
  return (known ? "another hiprtc may accept it: "
                : "it does not know " + arch + ", use a newer hiprtc: ") +
         "name one (BROACH_HIPRTC) or fetch one with tools/fetch-hiprtc (BROACH_HIPRTC_PREFIX)";
}

}  // namespace

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

Error refused(const Attempt& attempt, rtc::Failed failed) {
  if (failed.code == ErrorCode::kOutOfMemory) {
    return out_of_memory(attempt, std::move(failed.detail));
  }
  Error error{failed.code, subject(attempt) + ": " + failed.message, std::move(failed.detail)};
  if (!error.detail.empty() && error.detail.back() != '\n') error.detail += '\n';
  error.detail += "shape: " + attempt.plan.shape_json + "\noptions:";
  for (const std::string& option : attempt.plan.options) error.detail += " " + option;
  error.detail += '\n';
  return error;
}

Error lost(const Attempt& attempt, Error why) {
  if (why.code == ErrorCode::kTimedOut) {
    why.message = subject(attempt) + " was stopped after " +
                  std::to_string(attempt.options.time_limit_s) +
                  " s; raise the limit (BROACH_COMPILE_TIME_LIMIT)";
    return why;
  }
  if (why.code != ErrorCode::kCompilerDied) {
    why.message = subject(attempt) + ": " + why.message;
    return why;
  }
  const rtc::Trouble trouble = rtc::trouble_in(why.detail);
  if (trouble == rtc::Trouble::kMemory) return out_of_memory(attempt, std::move(why.detail));
  if (trouble == rtc::Trouble::kMachine) {
    return {ErrorCode::kIo,
            subject(attempt) + " met a machine in trouble, as its log says, and " + why.message,
            std::move(why.detail)};
  }
  why.message = subject(attempt) + " took its worker down: " + why.message + " (memory limit " +
                mebibytes(attempt.options.memory_limit_bytes) + "); " + advice(attempt);
  return why;
}

}  // namespace broach::specializer
