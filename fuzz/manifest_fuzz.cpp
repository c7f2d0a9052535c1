#include <cstddef>
#include <cstdint>
#include <string_view>

#include "specializer/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace broach::specializer;
  const auto manifest =
      read_manifest("fuzz.json", std::string_view(reinterpret_cast<const char*>(data), size));
  if (manifest) (void)distinct_shapes(*manifest, broach::Form::kPrompt).size();
  return 0;
}
