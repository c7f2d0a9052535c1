#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "specializer/bounded_json.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using Json = nlohmann::ordered_json;

int depth_of(const Json& value) {
  int deepest = 0;
  if (value.is_structured()) {
    for (const Json& part : value) deepest = std::max(deepest, 1 + depth_of(part));
  }
  return deepest;
}

}  // namespace

// JSON of any kind (a receipt's gates, a shape to show): bounded, and printed as it reads.
BROACH_FUZZ_TARGET(json) {
  using namespace broach::specializer;
  const auto value = parse_json<Json>(broach::fuzz::as_text(data, size));
  if (!value) return 0;
  if (depth_of(*value) > kMaxJsonDepth) std::abort();
  const auto again = parse_json<Json>(value->dump());
  if (!again || *again != *value) std::abort();
  return 0;
}
