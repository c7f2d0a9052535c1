#include "broach/runtime.hpp"
#include "runtime/device.hpp"
#include "tests/runtime/fixture.hpp"
#include "tests/support/catch.hpp"

using namespace broach;

TEST_CASE("without a GPU no device is chosen unasked, and the error names what was tried",
          "[runtime]") {
  if (runtime::open_device("cuda") || runtime::open_device("hip")) {
    BROACH_SKIP("this machine has a GPU");
  }
  const test::TempDir dir;
  for (const char* name : {"auto", ""}) {
    Options options = test::options_in(dir);
    options.device = name;
    const auto runtime = Runtime::create(options);
    REQUIRE_FALSE(runtime);
    INFO(runtime.error().message);
    for (const char* word : {"cuda: ", "hip: ", "BROACH_DEVICE=host"}) {
      CHECK(runtime.error().message.find(word) != std::string::npos);
    }
  }
}

TEST_CASE("the host serves who asks for it", "[runtime]") {
  const test::TempDir dir;
  Options options = test::options_in(dir);
  options.device = "host";
  const auto runtime = Runtime::create(options);
  REQUIRE(runtime);
  CHECK(runtime->device_name() == "host");
}
