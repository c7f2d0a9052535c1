#include <fmt/core.h>

#include <string>
#include <string_view>

#include "specializer/window_rows/kernel_source.hpp"
#include "specializer/window_rows/render.hpp"

namespace broach::specializer {
namespace {

constexpr std::uint32_t kPartThreads = 256;   // chunk256_base.cuh: a warp a run of 32 keys
constexpr std::uint32_t kMergeThreads = 128;  // chunk256_base.cuh

struct PlantedFault {
  std::string_view name;
  std::string_view enumerator;
};

// chunk256_base.cuh's Control. A name that is not here renders the plain kernel, which plan()
// refuses to give out under that name.
constexpr PlantedFault kPlantedFaults[] = {
    {"window_early", "kWindowEarly"},          {"unmasked_block", "kUnmaskedBlock"},
    {"ratio_off_by_one", "kRatioOffByOne"},    {"page_off_by_one", "kPageOffByOne"},
    {"rounding_dropped", "kRoundingDropped"},  {"merge_unscaled", "kMergeUnscaled"},
    {"merge_toward_zero", "kMergeTowardZero"}, {"sink_left_out", "kSinkLeftOut"},
    {"rerun_dropped", "kRerunDropped"},        {"whole_block_rerun", "kWholeBlockRerun"},
};

std::string_view enumerator(std::string_view control) {
  for (const PlantedFault& fault : kPlantedFaults) {
    if (fault.name == control) return fault.enumerator;
  }
  return "kNone";
}

bool on(Switch choice) { return choice == Switch::kOn; }

}  // namespace

Rendered render_window_rows_chunk256(const WindowRowsShape& shape, const Target& /*target*/,
                                     const Variant& variant) {
  // A generic kernel reads these from its parameters; its source is then the same for all of them.
  const bool generic = on(variant.generic);
  const KvLayout layout = generic ? KvLayout{} : shape.kv_layout;
  std::string source = "#include \"common/half.cuh\"\n";
  source += "#include \"window_rows/chunk256_base.cuh\"\n\n";
  source += "namespace broach::chunk256 {\n\n";
  source += fmt::format("constexpr int kHeadDim = {};\n", shape.head_dim);
  source += fmt::format("constexpr int kGqaRatio = {};\n", generic ? 0 : shape.gqa_ratio);
  source += fmt::format("constexpr int kWindow = {};\n", generic ? 0 : shape.window);
  source += fmt::format("constexpr Layout kLayout = Layout::{};\n",
                        window_rows::layout_enumerator(layout.kind));
  source += fmt::format("constexpr int kLayoutLength = {};\n", layout.length);
  source += fmt::format("constexpr Half kDtype = Half::{};\n",
                        shape.dtype == Dtype::kBf16 ? "kBf16" : "kF16");
  source += fmt::format("constexpr bool kSoftcap = {};\n", on(shape.softcap));
  source += fmt::format("constexpr bool kSinks = {};\n", on(shape.sinks));
  source += fmt::format("constexpr bool kChecked = {};\n", on(shape.checked));
  source += fmt::format("constexpr bool kGeneric = {};\n", generic);
  source +=
      fmt::format("constexpr Control kControl = Control::{};\n\n", enumerator(variant.control));
  source += "}  // namespace broach::chunk256\n\n";
  source += "#include \"window_rows/chunk256.cuh\"\n";
  return {std::move(source),
          {{"broach_window_rows_part", kPartThreads, 0},
           {"broach_window_rows_merge", kMergeThreads, 0}}};
}

}  // namespace broach::specializer
