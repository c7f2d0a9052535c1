#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "kernel_src/embedded.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

/// The names a source includes in quotes, in order of appearance.
///
/// Conditional sections count too: a file may be listed that one compiler skips.
std::vector<std::string_view> quoted_includes(std::string_view source);

/// A main source and every embedded file it includes, however indirectly: the main source first,
/// then the others by name.
///
/// Files under `host/` belong to the host target alone and are left out of other vendors' plans,
/// so that a change of the host shim leaves GPU binaries alone.
///
/// Errors:  kInternal naming the file that includes and the one that is not embedded.
Result<std::vector<SourceFile>> close_over_includes(std::string_view main_name,
                                                    std::string main_source, Vendor vendor,
                                                    std::span<const EmbeddedFile> embedded);

}  // namespace broach::specializer
