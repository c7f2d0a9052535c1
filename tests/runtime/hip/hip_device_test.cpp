#include "runtime/hip/hip_device.hpp"

#include <string_view>
#include <vector>

#include "runtime/hip/driver.hpp"
#include "tests/support/catch.hpp"

namespace broach::runtime::hip {
namespace {

/// A property structure with texts at some offsets and zeros elsewhere.
std::vector<char> properties(const std::vector<std::pair<std::size_t, std::string_view>>& texts) {
  std::vector<char> bytes(2048);
  for (const auto& [at, text] : texts) {
    std::copy(text.begin(), text.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return bytes;
}

}  // namespace

TEST_CASE("an architecture is found wherever a version of the structure has it", "[runtime][hip]") {
  CHECK(arch_in(properties({{0, "AMD Instinct MI250X"}, {396, "gfx90a:sramecc+:xnack-"}})) ==
        "gfx90a:sramecc+:xnack-");
  CHECK(arch_in(properties({{0, "Radeon gfx1151"}, {1160, "gfx1201"}})) == "gfx1201");
  // A product's name is no architecture, though it hold one.
  CHECK(arch_in(properties({{0, "Radeon gfx1151"}})).empty());
  CHECK(arch_in(properties({{100, "gfx"}})).empty());
  CHECK(arch_in(properties({{100, "gfx90a GPU"}})).empty());
  CHECK(arch_in(properties({})).empty());
}

TEST_CASE("a missing HIP run time, and a library that is none, are told by name",
          "[runtime][hip]") {
  const auto missing = open_hip_device(0, "/nonexistent/libamdhip64.so.6");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().detail.find("/nonexistent/libamdhip64.so.6") != std::string::npos);
  const auto foreign = open_hip_device(0, "libm.so.6");
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().code == ErrorCode::kDriver);
  CHECK(foreign.error().message.find("libm.so.6 lacks hipInit") != std::string::npos);
}

TEST_CASE("without an AMD GPU the device is not found, with the way out", "[runtime][hip]") {
  const auto device = open_hip_device(0);
  if (device) BROACH_SKIP("this machine has an AMD GPU");
  CHECK(device.error().code == ErrorCode::kNotFound);
  CHECK(device.error().message.find("HIP") != std::string::npos);
}

}  // namespace broach::runtime::hip
