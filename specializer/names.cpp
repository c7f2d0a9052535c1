#include "specializer/compilers.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

std::string_view name_of(ArtifactKind kind) noexcept {
  switch (kind) {
    case ArtifactKind::kCubin:
      return "cubin";
    case ArtifactKind::kCodeObject:
      return "code_object";
    case ArtifactKind::kHostSharedObject:
      return "host_so";
  }
  return "unknown";
}

std::string_view name_of(CompilerKind kind) noexcept {
  switch (kind) {
    case CompilerKind::kNvrtc:
      return "nvrtc";
    case CompilerKind::kHiprtc:
      return "hiprtc";
    case CompilerKind::kHost:
      return "host";
  }
  return "unknown";
}

}  // namespace broach::specializer
