#pragma once

#include <string_view>

#include "specializer/target.hpp"

namespace broach::specializer {

/// The host target whose MMA step is this target's: "host", or "host:step=k8" for sm_80 to
/// sm_89. A chip without a modelled step has "host" too: what uses no step has the host's bits.
std::string_view host_target_modelling(const Target& target);

}  // namespace broach::specializer
