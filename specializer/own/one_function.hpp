#pragma once

#include <memory>
#include <string_view>

#include "broach/result.hpp"
#include "specializer/own/own_family.hpp"

namespace broach::specializer::own {

/// The family of one source with one kernel function and no parameters, on every target; both
/// toolkits' headers can be included.
///
/// Errors:  kInvalidArgument where `function` is no C++ identifier.
Result<std::shared_ptr<const OwnFamily>> family_of_one(std::string_view function,
                                                       std::string_view source,
                                                       const CompilersOptions& toolkits = {});

}  // namespace broach::specializer::own
