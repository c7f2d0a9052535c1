#pragma once

#include <string>
#include <vector>

#include "broach/types.hpp"
#include "specializer/plan.hpp"
#include "specializer/target.hpp"

namespace broach::specializer {

/// A family's main source for one shape, and the functions it defines.
///
/// The source names each constant (`constexpr int kHeadDim = 256;`) and includes the family's
/// embedded header; the plan adds that header and everything it includes.
struct Rendered {
  std::string main_source;
  std::vector<KernelEntry> entries;
};

/// Shapes:  resolved and checked.
Rendered render_window_rows_chunk256(const WindowRowsShape& shape, const Target& target,
                                     const Variant& variant);
Rendered render_window_rows_mma32(const WindowRowsShape& shape, const Target& target,
                                  const Variant& variant);
Rendered render_window_rows_tile64(const WindowRowsShape& shape, const Target& target,
                                   const Variant& variant);

}  // namespace broach::specializer
