#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel_src/window_rows/tile64_layout.h"
#include "specializer/render.hpp"

namespace broach::specializer {
namespace {

using namespace broach::tile64;

// A generic kernel serves every ratio: its heads are padded to the largest.
constexpr int kLargestRatio = 32;

/// The constants of a kernel that follow from the shape and the target's shared memory.
struct DecodeGeometry {
  int blocks;
  int warps;
  int stages;
  int shared_bytes;
};

// Stages for a whole tile of K and V and one piece more, so that a block's first tile is asked for
// at once; fewer where shared memory is short. Two are the least that overlap copy and arithmetic.
DecodeGeometry decode_geometry(int head_dim, int ratio, bool p32, int shared_limit) {
  const int halves = p32 ? 2 : 1;
  DecodeGeometry geometry{};
  geometry.blocks = head_blocks(ratio);
  geometry.warps = decode_warps(head_dim, geometry.blocks);
  geometry.stages = 2 * (head_dim / piece_dims(head_dim)) + 1;
  while (geometry.stages > 2 &&
         decode_shared_bytes(head_dim, geometry.blocks, halves, geometry.stages) > shared_limit) {
    --geometry.stages;
  }
  geometry.shared_bytes = decode_shared_bytes(head_dim, geometry.blocks, halves, geometry.stages);
  return geometry;
}

struct PromptGeometry {
  int piece;
  int warps;
  int stages;
  int shared_bytes;
};

// Four stages while they fit, then fewer, then half as wide: what is left beside 64 rows of queries
// is short at head_dim 512 where a block gets 99 KiB.
PromptGeometry prompt_geometry(int head_dim, bool generic, int shared_limit) {
  PromptGeometry geometry{piece_dims(head_dim), prompt_warps(head_dim, generic), 4, 0};
  const auto bytes = [&] { return prompt_shared_bytes(head_dim, geometry.piece, geometry.stages); };
  while (geometry.stages > 2 && bytes() > shared_limit) --geometry.stages;
  if (bytes() > shared_limit && geometry.piece % 32 == 0) {
    geometry.piece /= 2;
    geometry.stages = 4;
    while (geometry.stages > 2 && bytes() > shared_limit) --geometry.stages;
  }
  geometry.shared_bytes = bytes();
  return geometry;
}

/// "window_early" as the kernels' enumerator, "kWindowEarly".
std::string enumerator(std::string_view control) {
  if (control.empty()) return "kNone";
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

std::string_view layout_name(KvLayoutKind kind) {
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

}  // namespace

Rendered render_window_rows_tile64(const WindowRowsShape& shape, const Target& target,
                                   const Variant& variant) {
  const bool generic = variant.generic == Switch::kOn;
  const auto head_dim = static_cast<int>(shape.head_dim);
  const int ratio = generic ? kLargestRatio : static_cast<int>(shape.gqa_ratio);
  const auto shared_limit = static_cast<int>(target.max_shared_bytes);
  // A generic kernel reads these from its parameters; its source is then the same for all of them.
  const KvLayout layout = generic ? KvLayout{} : shape.kv_layout;

  std::string source;
  const auto line = [&](std::string_view type, std::string_view name, auto value) {
    source += fmt::format("constexpr {} {} = {};\n", type, name, value);
  };
  source += "#include \"common/half.cuh\"\n";
  source += "#include \"window_rows/tile64_base.cuh\"\n\n";
  source += "namespace broach::tile64 {\n\n";
  line("int", "kHeadDim", head_dim);
  line("int", "kRatio", ratio);
  line("int", "kWindow", generic ? 0 : shape.window);
  line("Layout", "kLayout", fmt::format("Layout::{}", layout_name(layout.kind)));
  line("int", "kLayoutLength", layout.length);
  line("Half", "kHalf", shape.dtype == Dtype::kBf16 ? "Half::kBf16" : "Half::kF16");
  line("bool", "kP32", shape.p32 == Switch::kOn);
  line("bool", "kSoftcap", shape.softcap == Switch::kOn);
  line("bool", "kSinks", shape.sinks == Switch::kOn);
  line("bool", "kChecked", shape.checked == Switch::kOn);
  line("bool", "kGeneric", generic);
  line("Control", "kControl", fmt::format("Control::{}", enumerator(variant.control)));

  std::vector<KernelEntry> entries;
  if (shape.form == Form::kPrompt) {
    const PromptGeometry geometry = prompt_geometry(head_dim, generic, shared_limit);
    line("int", "kPieceDims", geometry.piece);
    line("int", "kStages", geometry.stages);
    line("int", "kPromptWarps", geometry.warps);
    line("int", "kPromptSharedBytes", geometry.shared_bytes);
    source += "\n}  // namespace broach::tile64\n\n";
    source += "#include \"window_rows/tile64_prompt.cuh\"\n";
    entries = {{"broach_window_rows_tile64_prompt", static_cast<std::uint32_t>(geometry.warps) * 32,
                static_cast<std::uint32_t>(geometry.shared_bytes)}};
  } else {
    const DecodeGeometry geometry =
        decode_geometry(head_dim, ratio, shape.p32 == Switch::kOn, shared_limit);
    line("int", "kPieceDims", piece_dims(head_dim));
    line("int", "kStages", geometry.stages);
    line("int", "kHeadBlocks", geometry.blocks);
    line("int", "kDecodeWarps", geometry.warps);
    line("int", "kDecodeSharedBytes", geometry.shared_bytes);
    source += "\n}  // namespace broach::tile64\n\n";
    source += "#include \"window_rows/tile64_decode.cuh\"\n";
    entries = {{"broach_window_rows_tile64_decode", static_cast<std::uint32_t>(geometry.warps) * 32,
                static_cast<std::uint32_t>(geometry.shared_bytes)},
               {"broach_window_rows_tile64_fold", kFoldThreads, 0}};
  }
  return {std::move(source), std::move(entries)};
}

}  // namespace broach::specializer
