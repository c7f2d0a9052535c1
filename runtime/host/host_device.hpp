#pragma once

#include <cstdint>
#include <memory>

#include "broach/result.hpp"
#include "runtime/device.hpp"
#include "specializer/target.hpp"

namespace broach::runtime {

/// Opens the host as a device: kernels compiled by the system's C++ compiler, a block's threads as
/// fibers, blocks side by side on OS threads.
///
/// Launches are synchronous and one at a time; every stream is the same. Device memory is the
/// process's own, 256-byte aligned, and starts as bytes of 0xff (NaN in every float type). Nothing
/// is started before the first launch.
///
/// Units:   `threads` OS threads; 0 takes the processor's.
std::shared_ptr<Device> open_host_device(std::uint32_t threads = 0);

/// The same for a host target of the caller's choice: "host:step=k8" computes sm_80's MMA step.
///
/// Errors:  kNotFound when this machine is of another architecture; kUnsupported when its processor
///          lacks what the target's code needs, naming that.
Result<std::shared_ptr<Device>> open_host_device(const specializer::Target& target,
                                                 std::uint32_t threads = 0);

}  // namespace broach::runtime
