#include "runtime/driver_version.hpp"

#include <fmt/core.h>

namespace broach::runtime {

Result<void> check_least_driver(specializer::Version driver, std::string_view words,
                                specializer::Version least) {
  if (!driver.stated() || !least.stated() || driver >= least) return {};
  return Error{ErrorCode::kDriver,
               fmt::format("the binary needs a driver of {} or later; this driver is {}; update "
                           "it, or point BROACH_NVRTC at an older NVRTC",
                           specializer::cuda_words(least), words),
               {}};
}

}  // namespace broach::runtime
