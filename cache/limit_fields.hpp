#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broach/types.hpp"

namespace broach::cache {

/// One number of LaunchLimits under the name that objects and the index store it by.
struct LimitField {
  std::string_view name;
  std::optional<std::uint32_t> LaunchLimits::*member;
};

/// Every number of LaunchLimits. Append only: names are in files.
inline constexpr std::array<LimitField, 22> kLimitFields{{
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
    {"block_x", &LaunchLimits::block_x},
    {"block_y", &LaunchLimits::block_y},
    {"block_z", &LaunchLimits::block_z},
    {"dynamic_shared", &LaunchLimits::dynamic_shared},
    {"cluster_x", &LaunchLimits::cluster_x},
    {"cluster_y", &LaunchLimits::cluster_y},
    {"cluster_z", &LaunchLimits::cluster_z},
}};

/// The name of the field that has each parameter's size, and its value: "8,8,4", or nothing.
inline constexpr std::string_view kParameterField = "parameter_bytes";
std::string parameter_text(const std::vector<std::uint32_t>& bytes);

/// The sizes of such a value; nothing where it is none.
std::optional<std::vector<std::uint32_t>> parameters_of(std::string_view text);

}  // namespace broach::cache
