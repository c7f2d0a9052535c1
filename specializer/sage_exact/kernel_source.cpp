#include "specializer/sage_exact/kernel_source.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace broach::specializer::sage_exact {
namespace {

/// One function of a boundary's source.
struct SourceEntry {
  std::string_view function;
  std::uint32_t block_threads;
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t block_rows;
};

// FastShared of kernel_src/sage_exact/attention_warpgroup.cuh, which asserts it: queries of three
// warpgroups (8 KiB each), 8 slots of 24 KiB, barriers; in units of 1 KiB.
constexpr std::uint32_t kFastSharedBytes = (3 * 8 + 8 * 24 + 1) * 1024;

constexpr SourceEntry kPrepEntries[] = {{"broach_sage_exact_prep", 256, 0, 0}};
constexpr SourceEntry kMeanEntries[] = {{"broach_sage_exact_k_mean_part", 128, 0, 0},
                                        {"broach_sage_exact_k_mean", 128, 0, 0}};
constexpr SourceEntry kInt8Entries[] = {{"broach_sage_exact_q_int8", 256, 0, 0},
                                        {"broach_sage_exact_k_int8", 256, 0, 0}};
constexpr SourceEntry kFp8Entries[] = {{"broach_sage_exact_v_range", 256, 0, 0},
                                       {"broach_sage_exact_v_scale", 128, 0, 0},
                                       {"broach_sage_exact_v_fp8", 256, 0, 0}};
constexpr SourceEntry kPlainEntries[] = {{"broach_sage_exact_attention", 128, 0, 64}};
constexpr SourceEntry kFastEntries[] = {
    {"broach_sage_exact_pack", 256, 0, 0},
    {"broach_sage_exact_attention_warpgroup", 384, kFastSharedBytes, 192}};

constexpr std::string_view kMeanControls[] = {"mean_unrounded"};
constexpr std::string_view kInt8Controls[] = {"mean_left_out", "mean_unrounded", "ieee_division"};
constexpr std::string_view kFp8Controls[] = {"ieee_division"};
constexpr std::string_view kAttentionControls[] = {"pv_order_swapped", "rescale_unfused",
                                                   "tail_moved", "tail_unmasked"};

/// "tail_moved" as kernel_src/sage_exact/names.cuh's enumerator, "kTailMoved".
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

std::string_view header_of(SageBoundary boundary, SageSchedule schedule) {
  switch (boundary) {
    case SageBoundary::kPrep:
      return "sage_exact/prep.cuh";
    case SageBoundary::kKMean:
      return "sage_exact/k_mean.cuh";
    case SageBoundary::kQkInt8:
      return "sage_exact/int8.cuh";
    case SageBoundary::kVFp8:
      return "sage_exact/fp8.cuh";
    case SageBoundary::kAttention:
      break;
  }
  return schedule == SageSchedule::kWarpgroup ? "sage_exact/attention_warpgroup.cuh"
                                              : "sage_exact/attention.cuh";
}

std::span<const SourceEntry> source_entries(const SageExactShape& shape) {
  switch (shape.boundary) {
    case SageBoundary::kPrep:
      return kPrepEntries;
    case SageBoundary::kKMean:
      return kMeanEntries;
    case SageBoundary::kQkInt8:
      return kInt8Entries;
    case SageBoundary::kVFp8:
      return kFp8Entries;
    case SageBoundary::kAttention:
      break;
  }
  if (shape.schedule == SageSchedule::kWarpgroup) return kFastEntries;
  return kPlainEntries;
}

}  // namespace

SageSchedule schedule_for(const Target& target) {
  return target.arch == "sm_90a" ? SageSchedule::kWarpgroup : SageSchedule::kPlain;
}

std::span<const std::string_view> controls_of(SageBoundary boundary) {
  switch (boundary) {
    case SageBoundary::kPrep:
      break;
    case SageBoundary::kKMean:
      return kMeanControls;
    case SageBoundary::kQkInt8:
      return kInt8Controls;
    case SageBoundary::kVFp8:
      return kFp8Controls;
    case SageBoundary::kAttention:
      return kAttentionControls;
  }
  return {};
}

std::string main_source(const SourceRequest& request) {
  const SageExactShape& shape = request.shape;
  const std::span<const std::string_view> controls = controls_of(shape.boundary);
  const bool planted =
      std::find(controls.begin(), controls.end(), request.control) != controls.end();
  std::string text =
      "#include \"sage_exact/names.cuh\"\n\n"
      "namespace broach::sage_exact {\n\n";
  const auto constant = [&](std::string_view type, std::string_view name, const auto& value) {
    text += fmt::format("constexpr {} {} = {};\n", type, name, value);
  };
  constant("Control", "kControl",
           fmt::format("Control::{}", planted ? enumerator(request.control) : "kNone"));
  constant("bool", "kGeneric", request.generic == Switch::kOn);
  if (shape.boundary == SageBoundary::kKMean) {
    // The operator lays the sums out by these: recorded with the binary.
    constant("int", "kMeanMultiprocessors", shape.multiprocessors);
    constant("int", "kMeanThreadsPerMultiprocessor", shape.threads_per_multiprocessor);
  }
  if (shape.boundary == SageBoundary::kAttention && shape.schedule == SageSchedule::kWarpgroup) {
    constant("int", "kFastSharedBytes", kFastSharedBytes);
  }
  text += fmt::format("\n}}  // namespace broach::sage_exact\n\n#include \"{}\"\n",
                      header_of(shape.boundary, shape.schedule));
  return text;
}

std::vector<KernelEntry> entries_of(const SageExactShape& shape) {
  std::vector<KernelEntry> entries;
  for (const SourceEntry& entry : source_entries(shape)) {
    entries.push_back({std::string(entry.function), entry.block_threads, entry.dynamic_shared_bytes,
                       entry.block_rows});
  }
  return entries;
}

}  // namespace broach::specializer::sage_exact
