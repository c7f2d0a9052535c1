#include "runtime/launch_checks.hpp"

#include "tests/support/catch.hpp"

namespace broach::runtime {
namespace {

specializer::Target chip() {
  specializer::Target target;
  target.name = "sm_90a";
  target.vendor = specializer::Vendor::kNvidia;
  target.max_shared_bytes = 232448;
  target.registers_per_block = 65536;
  return target;
}

LaunchLimits limits(std::uint32_t registers) {
  LaunchLimits made;
  made.function = "part";
  made.registers = registers;
  return made;
}

std::string refusal(const specializer::KernelEntry& entry, const LaunchLimits& with,
                    const specializer::Target& target = chip()) {
  const auto checked = check_launch(entry, with, target);
  if (checked) return {};
  CHECK(checked.error().code == ErrorCode::kLimitExceeded);
  return checked.error().message;
}

}  // namespace

TEST_CASE("too many registers are refused with the product and the file", "[runtime][launch]") {
  CHECK(refusal({"part", 512, 0}, limits(156)) ==
        "part cannot launch on sm_90a: 156 registers x 512 threads = 79,872 exceed the chip's "
        "65,536");
  CHECK(refusal({"part", 512, 0}, limits(128)).empty());
}

TEST_CASE("registers are counted as the chip hands them out", "[runtime][launch]") {
  CHECK(refusal({"part", 1000, 0}, limits(65)) ==
        "part cannot launch on sm_90a: 65 registers x 1000 threads, allocated as 72 x 1024 = "
        "73,728, exceed the chip's 65,536");
  CHECK(refusal({"part", 1000, 0}, limits(64)).empty());
}

TEST_CASE("an unstated limit or register file is not checked", "[runtime][launch]") {
  CHECK(refusal({"part", 512, 0}, LaunchLimits{}).empty());
  specializer::Target target = chip();
  target.registers_per_block = 0;
  CHECK(refusal({"part", 512, 0}, limits(255), target).empty());
}

TEST_CASE("too many threads name whose limit it is", "[runtime][launch]") {
  CHECK(refusal({"part", 1025, 0}, limits(16)) ==
        "part cannot launch on sm_90a: 1,025 threads a block exceed the chip's 1,024");
  LaunchLimits bounded = limits(16);
  bounded.max_threads = 384;
  CHECK(refusal({"part", 385, 0}, bounded) ==
        "part cannot launch on sm_90a: 385 threads a block exceed the binary's maximum of 384");
  CHECK(refusal({"part", 384, 0}, bounded).empty());
  bounded.launch_bounds = 256;
  CHECK(refusal({"part", 257, 0}, bounded) ==
        "part cannot launch on sm_90a: 257 threads a block exceed the launch bound promised to the "
        "compiler, 256");
}

TEST_CASE("shared memory is static plus dynamic against the chip's limit", "[runtime][launch]") {
  LaunchLimits shared = limits(32);
  shared.static_shared = 40000;
  CHECK(refusal({"part", 256, 200000}, shared) ==
        "part cannot launch on sm_90a: 40,000 static + 200,000 dynamic bytes of shared memory = "
        "240,000 exceed the chip's limit of 232,448 a block");
  CHECK(refusal({"part", 256, 232448 - 40000}, shared).empty());
  shared.max_dynamic_shared = 1000;
  CHECK(refusal({"part", 256, 1001}, shared) ==
        "part cannot launch on sm_90a: 1,001 bytes of dynamic shared memory exceed the binary's "
        "1,000");
}

}  // namespace broach::runtime
