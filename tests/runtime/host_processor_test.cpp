#include "runtime/host/processor.hpp"

#include "runtime/host/host_device.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace broach;
using namespace broach::runtime;
using host::missing_for_x86_64_v3;
using host::ProcessorFeatures;

ProcessorFeatures haswell() {
  ProcessorFeatures features;
  features.leaf_1_ecx = 1U << 12 | 1U << 22 | 1U << 27 | 1U << 28 | 1U << 29;
  features.leaf_7_ebx = 1U << 3 | 1U << 5 | 1U << 8;
  features.leaf_80000001_ecx = 1U << 5;
  features.saved_state = 7;
  return features;
}

}  // namespace

TEST_CASE("a processor of the third level lacks nothing, one below it is told what",
          "[runtime][host_device]") {
  CHECK(missing_for_x86_64_v3(haswell()).empty());
  ProcessorFeatures nehalem;  // SSE4.2 and nothing after it.
  nehalem.leaf_1_ecx = 1U << 20;
  CHECK(missing_for_x86_64_v3(nehalem) == "fma, movbe, avx, f16c, bmi1, avx2, bmi2, lzcnt");
  ProcessorFeatures no_fma = haswell();
  no_fma.leaf_1_ecx &= ~(1U << 12);
  CHECK(missing_for_x86_64_v3(no_fma) == "fma");
  ProcessorFeatures old_system = haswell();
  old_system.saved_state = 2;
  CHECK(missing_for_x86_64_v3(old_system).find("saves avx registers") != std::string::npos);
}

TEST_CASE("this machine's host device opens exactly where its processor runs the host's code",
          "[runtime][host_device]") {
  const auto target = specializer::parse_target("host");
  REQUIRE(target);
  const std::string why = host::why_not_runnable(target->name);
  const auto device = open_host_device(*target);
  CHECK(static_cast<bool>(device) == why.empty());
  if (!device) CHECK(device.error().message == why);
  CHECK(host::why_not_runnable("host-aarch64").empty());  // Another check's business.
}
