#include "runtime/driver_version.hpp"

#include "tests/support/catch.hpp"

namespace broach::runtime {

TEST_CASE("a driver older than the binary needs is refused with both versions",
          "[runtime][driver_version]") {
  const auto old = check_least_driver({12, 4}, "550.54.15 (CUDA 12.4)", {13, 0});
  REQUIRE_FALSE(old);
  CHECK(old.error().code == ErrorCode::kDriver);
  CHECK(old.error().message.find("CUDA 13.0 or later") != std::string::npos);
  CHECK(old.error().message.find("550.54.15 (CUDA 12.4)") != std::string::npos);
}

TEST_CASE("a driver as new as needed, or without a version, passes", "[runtime][driver_version]") {
  CHECK(check_least_driver({13, 0}, "580.159.04 (CUDA 13.0)", {13, 0}));
  CHECK(check_least_driver({13, 0}, "580.159.04 (CUDA 13.0)", {12, 9}));
  CHECK(check_least_driver({13, 10}, "580.159.04 (CUDA 13.10)", {13, 9}));
  CHECK(check_least_driver({}, "host", {13, 0}));
  CHECK(check_least_driver({13, 0}, "580.159.04 (CUDA 13.0)", {}));
}

}  // namespace broach::runtime
