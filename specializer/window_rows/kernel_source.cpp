#include "specializer/window_rows/kernel_source.hpp"

#include <algorithm>
#include <utility>

namespace broach::specializer::window_rows {
namespace {

/// "window_early" as kernel_src/window_rows/names.cuh's enumerator, "kWindowEarly".
std::string enumerator(std::string_view control) {
  std::string name = "k";
  bool upper = true;
  for (const char c : control) {
    if (c == '_') {
      upper = true;
    } else {
      name += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      upper = false;
    }
  }
  return name;
}

}  // namespace

std::string_view layout_enumerator(KvLayoutKind kind) {
  switch (kind) {
    case KvLayoutKind::kLinear:
      return "kLinear";
    case KvLayoutKind::kRing:
      return "kRing";
    case KvLayoutKind::kPaged:
      return "kPaged";
  }
  return "kLinear";
}

KernelSource::KernelSource(const WindowRowsShape& shape, int ratio, const Variant& variant,
                           std::span<const std::string_view> controls)
    : text_(
          "#include \"common/half.cuh\"\n"
          "#include \"window_rows/names.cuh\"\n\n"
          "namespace broach::window_rows {\n\n") {
  const bool generic = variant.generic == Switch::kOn;
  const KvLayout layout = generic ? KvLayout{} : shape.kv_layout;
  const bool planted =
      std::find(controls.begin(), controls.end(), variant.control) != controls.end();
  constant("int", "kHeadDim", shape.head_dim);
  constant("int", "kRatio", ratio);
  constant("int", "kWindow", generic ? 0 : shape.window);
  constant("Layout", "kLayout", fmt::format("Layout::{}", layout_enumerator(layout.kind)));
  constant("int", "kLayoutLength", layout.length);
  constant("Half", "kHalf", shape.dtype == Dtype::kBf16 ? "Half::kBf16" : "Half::kF16");
  constant("bool", "kP32", shape.p32 == Switch::kOn);
  constant("bool", "kSoftcap", shape.softcap == Switch::kOn);
  constant("bool", "kSinks", shape.sinks == Switch::kOn);
  constant("bool", "kChecked", shape.checked == Switch::kOn);
  constant("bool", "kGeneric", generic);
  constant("Control", "kControl",
           fmt::format("Control::{}", planted ? enumerator(variant.control) : "kNone"));
}

std::string KernelSource::finish(std::string_view header) && {
  text_ += fmt::format("\n}}  // namespace broach::window_rows\n\n#include \"{}\"\n", header);
  return std::move(text_);
}

}  // namespace broach::specializer::window_rows
