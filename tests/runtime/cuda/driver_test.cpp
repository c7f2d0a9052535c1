#include "runtime/cuda/driver.hpp"

#include <array>

#include "runtime/cuda/compute_target.hpp"
#include "tests/support/catch.hpp"

namespace broach::runtime::cuda {

TEST_CASE("the driver's release is read from both kinds of kernel module", "[runtime][cuda]") {
  CHECK(driver_release("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 "
                       "22:23:56 UTC 2024\nGCC version:  gcc version 12.2.0\n") == "550.54.15");
  CHECK(driver_release("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  "
                       "Release Build  (dvs-builder)") == "580.159.04");
  CHECK(driver_release("GCC version 12").empty());
  CHECK(driver_release("").empty());
}

TEST_CASE("a chip is compiled for its own target or the nearest earlier one", "[runtime][cuda]") {
  constexpr std::array<std::string_view, 5> kKnown{"sm_80", "sm_86", "sm_90a", "sm_100a", "host"};
  const auto name = [&](int major, int minor) {
    auto made = compute_target(major, minor, kKnown);
    return made ? *made : made.error().message;
  };
  CHECK(name(9, 0) == "sm_90a");
  CHECK(name(8, 6) == "sm_86");
  CHECK(name(8, 9) == "sm_86");
  CHECK(name(8, 0) == "sm_80");
  // A binary with a chip's own instructions runs on that chip alone.
  CHECK(name(10, 3) ==
        "compute capability 10.3 has no target; known are sm_80 sm_86 sm_90a sm_100a");
  CHECK(name(7, 5).find("7.5") != std::string::npos);
}

TEST_CASE("a missing driver is told with what was tried", "[runtime][cuda]") {
  const auto driver = Driver::open("/nonexistent/libcuda.so.1");
  REQUIRE_FALSE(driver);
  CHECK(driver.error().code == ErrorCode::kNotFound);
  CHECK(driver.error().detail.find("/nonexistent/libcuda.so.1") != std::string::npos);
}

TEST_CASE("a library that is no CUDA driver is told by the entry it lacks", "[runtime][cuda]") {
  const auto driver = Driver::open("libm.so.6");
  REQUIRE_FALSE(driver);
  CHECK(driver.error().code == ErrorCode::kDriver);
  CHECK(driver.error().message.find("libm.so.6 lacks cuInit") != std::string::npos);
}

}  // namespace broach::runtime::cuda
