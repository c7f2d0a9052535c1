#include "runtime/host/processor.hpp"

#include <fmt/core.h>

#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace broach::runtime::host {
namespace {

constexpr std::uint32_t bit(int number) { return std::uint32_t{1} << number; }

struct Feature {
  std::string_view name;
  std::uint32_t ProcessorFeatures::*word;
  std::uint32_t mask;
};

// The x86-64 psABI's list for its third level, besides what every such processor has: a processor
// with AVX2 has the second level's.
constexpr std::array<Feature, 8> kThirdLevel = {{
    {"fma", &ProcessorFeatures::leaf_1_ecx, bit(12)},
    {"movbe", &ProcessorFeatures::leaf_1_ecx, bit(22)},
    {"avx", &ProcessorFeatures::leaf_1_ecx, bit(28)},
    {"f16c", &ProcessorFeatures::leaf_1_ecx, bit(29)},
    {"bmi1", &ProcessorFeatures::leaf_7_ebx, bit(3)},
    {"avx2", &ProcessorFeatures::leaf_7_ebx, bit(5)},
    {"bmi2", &ProcessorFeatures::leaf_7_ebx, bit(8)},
    {"lzcnt", &ProcessorFeatures::leaf_80000001_ecx, bit(5)},
}};

constexpr std::uint32_t kOsxsave = bit(27);
constexpr std::uint64_t kVectorState = 6;  // The SSE and AVX registers.

}  // namespace

ProcessorFeatures processor_features() {
  ProcessorFeatures features;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) features.leaf_1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) features.leaf_7_ebx = b;
  if (__get_cpuid(0x80000001U, &a, &b, &c, &d) != 0) features.leaf_80000001_ecx = c;
  if ((features.leaf_1_ecx & kOsxsave) != 0) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    features.saved_state = std::uint64_t{high} << 32 | low;
  }
#endif
  return features;
}

std::string missing_for_x86_64_v3(const ProcessorFeatures& features) {
  std::string missing;
  const auto lacks = [&](std::string_view name) {
    missing += missing.empty() ? "" : ", ";
    missing += name;
  };
  for (const Feature& feature : kThirdLevel) {
    if ((features.*feature.word & feature.mask) == 0) lacks(feature.name);
  }
  const bool has_avx = (features.leaf_1_ecx & bit(28)) != 0;
  const bool is_saved = (features.saved_state & kVectorState) == kVectorState;
  if (has_avx && !is_saved) lacks("an operating system that saves avx registers");
  return missing;
}

std::string why_not_runnable([[maybe_unused]] std::string_view target) {
#if defined(__x86_64__)
  const std::string_view processor = target.substr(0, target.find(':'));
  if (processor != "host-x86-64-v3") return "";
  static const std::string missing = missing_for_x86_64_v3(processor_features());
  if (missing.empty()) return "";
  return fmt::format(
      "this processor lacks {}, which {} needs; host kernels run on x86-64-v3 "
      "processors (AVX2 and FMA) only",
      missing, processor);
#else
  return "";
#endif
}

}  // namespace broach::runtime::host
