#include <cstddef>
#include <cstdint>

#include "specializer/limits.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace broach::specializer;
  static const Plan plan = [] {
    Plan made;
    made.target = *parse_target("host-x86-64-v3");
    made.kind = ArtifactKind::kHostSharedObject;
    made.entries = {{"sum", 192, 0}};
    return made;
  }();
  (void)read_limits(plan, {reinterpret_cast<const std::byte*>(data), size}, "").ok();
  return 0;
}
