#pragma once

#include <memory>
#include <string>

#include "runtime/device.hpp"

namespace broach::runtime::cuda {

/// Opens a CUDA device by its ordinal, with the driver found by Driver::open's search or at
/// `driver_library`.
///
/// Errors:  kNotFound with what was tried; kUnsupported; kDriver.
Result<std::shared_ptr<Device>> open_cuda_device(int ordinal,
                                                 const std::string& driver_library = {});

}  // namespace broach::runtime::cuda
