#pragma once

#include <memory>
#include <string>

#include "runtime/device.hpp"

namespace broach::runtime::hip {

/// Opens a HIP device by its ordinal, with the run time found by Driver::open's search or at
/// `library`.
///
/// Errors:  kNotFound with what was tried; kUnsupported when no known target serves the chip;
///          kDriver.
Result<std::shared_ptr<Device>> open_hip_device(int ordinal, const std::string& library = {});

}  // namespace broach::runtime::hip
