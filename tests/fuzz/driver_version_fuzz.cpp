#include <cstdlib>
#include <string_view>

#include "runtime/driver_version.hpp"
#include "tests/fuzz/target.hpp"

// The least driver that an object names, against a driver's own words; both sides of a zero byte.
BROACH_FUZZ_TARGET(driver_version) {
  const std::string_view text = broach::fuzz::as_text(data, size);
  const std::string_view driver = text.substr(0, text.find('\0'));
  const std::string_view least =
      driver.size() == text.size() ? std::string_view("CUDA 12.0") : text.substr(driver.size() + 1);
  const auto forth = broach::runtime::check_least_driver(driver, least);
  const auto back = broach::runtime::check_least_driver(least, driver);
  // Of two versions one is enough for the other, and each for itself.
  if (!forth && !back) std::abort();
  if (!broach::runtime::check_least_driver(least, least)) std::abort();
  return 0;
}
