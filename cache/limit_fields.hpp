#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "broach/types.hpp"

namespace broach::cache {

/// One number of LaunchLimits under the name that objects and the index store it by.
struct LimitField {
  std::string_view name;
  std::optional<std::uint32_t> LaunchLimits::*member;
};

/// Every number of LaunchLimits. Append only: names are in files.
inline constexpr std::array<LimitField, 15> kLimitFields{{
    {"registers", &LaunchLimits::registers},
    {"spill_bytes", &LaunchLimits::spill_bytes},
    {"stack_bytes", &LaunchLimits::stack_bytes},
    {"static_shared", &LaunchLimits::static_shared},
    {"max_dynamic_shared", &LaunchLimits::max_dynamic_shared},
    {"constant_bytes", &LaunchLimits::constant_bytes},
    {"max_threads", &LaunchLimits::max_threads},
    {"launch_bounds", &LaunchLimits::launch_bounds},
    {"barriers", &LaunchLimits::barriers},
    {"wave_size", &LaunchLimits::wave_size},
    {"vgprs", &LaunchLimits::vgprs},
    {"agprs", &LaunchLimits::agprs},
    {"sgprs", &LaunchLimits::sgprs},
    {"vgpr_spills", &LaunchLimits::vgpr_spills},
    {"sgpr_spills", &LaunchLimits::sgpr_spills},
}};

}  // namespace broach::cache
