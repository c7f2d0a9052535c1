#include "specializer/compilers.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <new>

#include "specializer/compile/failures.hpp"
#include "specializer/compile/identity.hpp"
#include "specializer/compile/toolchain.hpp"

namespace broach::specializer {
namespace {

constexpr std::uint32_t kDefaultTimeLimitS = 300;
constexpr std::uint64_t kDefaultMemoryLimitBytes = std::uint64_t{8} << 30;
constexpr char kDefaultSearchPath[] = "/usr/local/bin:/usr/bin:/bin";

constexpr std::array<CompilerKind, 3> kKinds = {CompilerKind::kNvrtc, CompilerKind::kHiprtc,
                                                CompilerKind::kHost};

// What a worker inherits (ulimit -v).
std::uint64_t own_memory_limit() {
  rlimit own{};
  if (::getrlimit(RLIMIT_AS, &own) != 0) return RLIM_INFINITY;
  return std::min(own.rlim_cur, own.rlim_max);
}

CompilersOptions with_defaults(CompilersOptions options) {
  if (options.time_limit_s == 0) options.time_limit_s = kDefaultTimeLimitS;
  if (options.memory_limit_bytes == 0) options.memory_limit_bytes = kDefaultMemoryLimitBytes;
  options.memory_limit_bytes = std::min(options.memory_limit_bytes, own_memory_limit());
  if (options.search_path.empty()) options.search_path = kDefaultSearchPath;
  if (options.scratch.empty()) options.scratch = {"/tmp", "/var/tmp", "/dev/shm"};
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

}  // namespace

struct Compilers::State {
  State(CompilersOptions chosen, Memo kept)
      : options(with_defaults(std::move(chosen))), memo(std::move(kept)) {}

  Toolchain& of(CompilerKind kind) {
    return kind == CompilerKind::kNvrtc ? nvrtc : kind == CompilerKind::kHiprtc ? hiprtc : host;
  }

  const CompilersOptions options;
  const IdentityMemo memo;
  WorkerRegistry registry;
  Toolchain nvrtc{CompilerKind::kNvrtc, options, memo, registry};
  Toolchain hiprtc{CompilerKind::kHiprtc, options, memo, registry};
  Toolchain host{CompilerKind::kHost, options, memo, registry};
};

Compilers::Compilers(CompilersOptions options, Memo memo)
    : state_(std::make_unique<State>(std::move(options), std::move(memo))) {}

Compilers::~Compilers() = default;

std::string Compilers::limits() const {
  const CompilersOptions& options = state_->options;
  return std::to_string(options.time_limit_s) + " s, " + mebibytes(options.memory_limit_bytes);
}

void Compilers::close() noexcept { state_->registry.end_all(); }

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

CompilerStatus Compilers::status(const Target& target) {
  return state_->of(kind_for(target)).status();
}

}  // namespace broach::specializer
