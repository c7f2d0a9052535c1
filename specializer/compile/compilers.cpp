#include "specializer/compilers.hpp"

#include <array>
#include <new>

#include "specializer/compile/identity.hpp"
#include "specializer/compile/toolchain.hpp"

namespace broach::specializer {
namespace {

constexpr std::uint32_t kDefaultTimeLimitS = 300;
constexpr std::uint64_t kDefaultMemoryLimitBytes = std::uint64_t{8} << 30;

constexpr std::array<CompilerKind, 3> kKinds = {CompilerKind::kNvrtc, CompilerKind::kHiprtc,
                                                CompilerKind::kHost};

CompilersOptions with_defaults(CompilersOptions options) {
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

CompilerStatus Compilers::status(const Target& target) {
  return state_->of(kind_for(target)).status();
}

}  // namespace broach::specializer
