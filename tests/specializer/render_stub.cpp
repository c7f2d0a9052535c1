// Stands in for the family's renderer until it is part of the library.
#include <fmt/format.h>

#include "specializer/render.hpp"

namespace broach::specializer {

Rendered render_window_rows_chunk256(const WindowRowsShape& shape, const Target& target,
                                     const Variant& variant) {
  std::string source = fmt::format("#include \"window_rows/params.h\"\n// {} {}\n", to_json(shape),
                                   target.warp_width);
  if (!variant.control.empty()) source += fmt::format("// {}\n", variant.control);
  if (variant.generic == Switch::kOn) source += "// generic\n";
  return {std::move(source), {{"decode_chunks", 128, 0}, {"decode_merge", 64, 1024}}};
}

}  // namespace broach::specializer
