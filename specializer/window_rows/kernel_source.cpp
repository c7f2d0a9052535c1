#include "specializer/window_rows/kernel_source.hpp"

#include <utility>

#include "specializer/common_choices.hpp"
#include "specializer/window_rows/controls.hpp"

namespace broach::specializer::window_rows {
namespace {

/// "window_early" as the kernels' enumerator of it, "kWindowEarly".
std::string enumerator(std::string_view name) {
  std::string made = "k";
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
    } else {
      made += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      upper = false;
    }
  }
  return made;
}

std::string_view arith_enumerator(Arith arith) {
  switch (arith) {
    case Arith::kChunk256:
      return "kChunk256";
    case Arith::kMma32:
      return "kMma32";
    case Arith::kTile64Ex2:
      return "kTile64Ex2";
    case Arith::kTile64:
    case Arith::kDefault:
      return "kTile64";
  }
  return "kTile64";
}

}  // namespace

KernelSource::KernelSource(const WindowRowsShape& shape, int ratio, const Variant& variant)
    : text_(
          "#include \"window_rows/config.h\"\n\n"
          "namespace broach::window_rows {\n\n"
          "constexpr Config kConfig{\n") {
  const bool generic = on(variant.generic);
  const KvLayout layout = generic ? KvLayout{} : shape.kv_layout;
  set("arith", fmt::format("Arith::{}", arith_enumerator(shape.arith)));
  set("head_dim", shape.head_dim);
  set("ratio", ratio);
  set("window", generic ? 0 : shape.window);
  set("layout", fmt::format("Layout::{}", layout_enumerator(layout.kind)));
  set("layout_length", layout.length);
  set("dtype", shape.dtype == Dtype::kBf16 ? "Half::kBf16" : "Half::kF16");
  set("p32", on(shape.p32));
  set("softcap", on(shape.softcap));
  set("sinks", on(shape.sinks));
  set("checked", on(shape.checked));
  set("generic", generic);
  if (has_control(variant.control, shape)) {
    set("control", fmt::format("Control::{}", enumerator(variant.control)));
  }
}

std::string KernelSource::finish(std::string_view header) && {
  text_ += fmt::format(
      "}};\n\n"
      "static_assert(CheckedConfig<kConfig>::kOk);\n\n"
      "}}  // namespace broach::window_rows\n\n"
      "#include \"{}\"\n",
      header);
  return std::move(text_);
}

}  // namespace broach::specializer::window_rows
