#include "specializer/limits.hpp"

#include <exception>
#include <new>
#include <string>

#include "specializer/limits/code_object.hpp"
#include "specializer/limits/cubin.hpp"
#include "specializer/limits/host_object.hpp"

namespace broach::specializer {

Result<std::vector<LaunchLimits>> read_limits(const Plan& plan, std::span<const std::byte> binary,
                                              std::string_view compile_log,
                                              std::span<const std::string> symbols) {
  try {
    std::vector<KernelEntry> entries = plan.entries;
    for (std::size_t i = 0; i < symbols.size() && i < entries.size(); ++i) {
      entries[i].function = symbols[i];
    }
    switch (plan.kind) {
      case ArtifactKind::kCubin:
        return read_cubin(entries, plan.target, binary, compile_log);
      case ArtifactKind::kCodeObject:
        return read_code_object(entries, plan.target, binary);
      case ArtifactKind::kHostSharedObject:
        return read_host_object(entries, plan.target, binary);
    }
    return Error{ErrorCode::kInternal, "limits: unknown kind of binary", ""};
  } catch (const std::bad_alloc&) {
    return Error{
        ErrorCode::kOutOfMemory,
        "limits: no memory to read a binary of " + std::to_string(binary.size()) + " bytes", ""};
  } catch (const std::exception& fault) {
    return Error{ErrorCode::kDamaged, std::string("limits: ") + fault.what(), ""};
  }
}

}  // namespace broach::specializer
