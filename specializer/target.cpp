#include "specializer/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "specializer/host_model.hpp"

namespace broach::specializer {
namespace {

constexpr std::uint32_t kKiB = 1024;

// Target features that change code, as bits of `ChipFacts::features`: AMD's, and which chips'
// matrix step the host computes.
enum FeatureBit : std::uint8_t { kNoFeatures = 0, kSramecc = 1, kXnack = 2, kStep = 4 };

constexpr std::string_view kStepK8 = "step=k8";

struct ChipFacts {
  std::string_view name;
  Vendor vendor;
  std::string_view arch;
  std::uint32_t warp_width;
  MatrixStep matrix_step;
  std::uint32_t max_shared_bytes;
  std::uint32_t registers_per_block;
  std::string_view least_driver;
  std::uint8_t features = kNoFeatures;
};

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": shared memory is
// the SM's less 1 KiB that the system keeps; every listed chip has 64 Ki registers a block.
constexpr std::uint32_t kNvidiaRegisters = 64 * 1024;
constexpr std::uint32_t kNvidiaLarge = 227 * kKiB;
constexpr std::uint32_t kNvidiaMiddle = 163 * kKiB;
constexpr std::uint32_t kNvidiaSmall = 99 * kKiB;

// AMD's ISA guides: 64 KiB of LDS a workgroup (160 on gfx950). The VGPR file a workgroup can reach
// is four SIMDs': 512 x 64 lanes on CDNA 2 and later, half of that on what came before (whose
// accumulation registers ordinary code does not use), 1,024 or 1,536 x 32 lanes on RDNA.
constexpr std::uint32_t kGcnRegisters = 4 * 256 * 64;
constexpr std::uint32_t kCdnaRegisters = 4 * 512 * 64;
constexpr std::uint32_t kRdnaRegisters = 4 * 1024 * 32;
constexpr std::uint32_t kLargeRdnaRegisters = 4 * 1536 * 32;

// The host has neither limit. Shared memory is bounded as on sm_90, so that a plan the largest
// chips can launch has a host form and one that no chip can launch has none.
constexpr std::uint32_t kHostShared = kNvidiaLarge;

constexpr auto kN = Vendor::kNvidia;
constexpr auto kA = Vendor::kAmd;
constexpr auto kH = Vendor::kHost;
constexpr std::uint8_t kBoth = kSramecc | kXnack;

// clang-format off
constexpr ChipFacts kChips[] = {
    {"sm_80", kN, "sm_80", 32, MatrixStep::kTwoK8, kNvidiaMiddle, kNvidiaRegisters, "CUDA 11.0"},
    {"sm_86", kN, "sm_86", 32, MatrixStep::kTwoK8, kNvidiaSmall, kNvidiaRegisters, "CUDA 11.1"},
    {"sm_87", kN, "sm_87", 32, MatrixStep::kTwoK8, kNvidiaMiddle, kNvidiaRegisters, "CUDA 11.4"},
    {"sm_89", kN, "sm_89", 32, MatrixStep::kTwoK8, kNvidiaSmall, kNvidiaRegisters, "CUDA 11.8"},
    {"sm_90a", kN, "sm_90a", 32, MatrixStep::kOneK16, kNvidiaLarge, kNvidiaRegisters, "CUDA 12.0"},
    {"sm_100a", kN, "sm_100a", 32, MatrixStep::kOneK16, kNvidiaLarge, kNvidiaRegisters, "CUDA 12.8"},
    {"sm_103a", kN, "sm_103a", 32, MatrixStep::kOneK16, kNvidiaLarge, kNvidiaRegisters, "CUDA 12.9"},
    {"sm_110a", kN, "sm_110a", 32, MatrixStep::kOneK16, kNvidiaLarge, kNvidiaRegisters, "CUDA 13.0"},
    {"sm_120a", kN, "sm_120a", 32, MatrixStep::kOneK16, kNvidiaSmall, kNvidiaRegisters, "CUDA 12.8"},
    {"sm_121a", kN, "sm_121a", 32, MatrixStep::kOneK16, kNvidiaSmall, kNvidiaRegisters, "CUDA 12.9"},
    {"gfx906", kA, "gfx906", 64, MatrixStep::kNone, 64 * kKiB, kGcnRegisters, "", kBoth},
    {"gfx908", kA, "gfx908", 64, MatrixStep::kMfma, 64 * kKiB, kGcnRegisters, "", kBoth},
    {"gfx90a", kA, "gfx90a", 64, MatrixStep::kMfma, 64 * kKiB, kCdnaRegisters, "", kBoth},
    {"gfx942", kA, "gfx942", 64, MatrixStep::kMfma, 64 * kKiB, kCdnaRegisters, "", kBoth},
    {"gfx950", kA, "gfx950", 64, MatrixStep::kMfma, 160 * kKiB, kCdnaRegisters, "", kBoth},
    {"gfx1030", kA, "gfx1030", 32, MatrixStep::kNone, 64 * kKiB, kRdnaRegisters, ""},
    {"gfx1100", kA, "gfx1100", 32, MatrixStep::kWmma, 64 * kKiB, kLargeRdnaRegisters, ""},
    {"gfx1101", kA, "gfx1101", 32, MatrixStep::kWmma, 64 * kKiB, kLargeRdnaRegisters, ""},
    {"gfx1102", kA, "gfx1102", 32, MatrixStep::kWmma, 64 * kKiB, kRdnaRegisters, ""},
    {"gfx1151", kA, "gfx1151", 32, MatrixStep::kWmma, 64 * kKiB, kLargeRdnaRegisters, ""},
    {"gfx1200", kA, "gfx1200", 32, MatrixStep::kWmma, 64 * kKiB, kLargeRdnaRegisters, ""},
    {"gfx1201", kA, "gfx1201", 32, MatrixStep::kWmma, 64 * kKiB, kLargeRdnaRegisters, ""},
    {"host-x86-64-v3", kH, "x86-64-v3", 32, MatrixStep::kOneK16, kHostShared, 0, "", kStep},
    {"host-aarch64", kH, "armv8-a", 32, MatrixStep::kOneK16, kHostShared, 0, "", kStep},
};
// clang-format on

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kChips)> names{};
  std::transform(std::begin(kChips), std::end(kChips), names.begin(),
                 [](const ChipFacts& chip) { return chip.name; });
  return names;
}();

const ChipFacts* find_chip(std::string_view name) {
  const auto* const chip = std::find_if(std::begin(kChips), std::end(kChips),
                                        [&](const ChipFacts& each) { return each.name == name; });
  return chip == std::end(kChips) ? nullptr : chip;
}

Error unknown(std::string_view name) {
  std::string way_out;
  // "sm_90" and "compute_90" are what people type; only the architecture-specific form is built.
  const std::size_t digits = name.find_first_of("0123456789");
  const std::string specific =
      digits == std::string_view::npos ? "" : fmt::format("sm_{}a", name.substr(digits));
  if (name.starts_with("sm_") && find_chip(specific) != nullptr) {
    way_out = fmt::format("; {} works", specific);
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("target \"{}\" is not known{}; known: {}, host", name, way_out,
                           fmt::join(kNames, ", ")),
               ""};
}

std::string_view features_of(const ChipFacts& chip) {
  if ((chip.features & kBoth) != 0) return "each of sramecc and xnack once, + or -";
  if ((chip.features & kStep) != 0) return "step=k8 does, once; without it the step is sm_90's";
  return "it has none";
}

struct Features {
  std::string sramecc, xnack, step;  ///< Each with its colon, or empty.
};

// Where a feature's word goes, or null where the chip has no such feature.
std::string* place_of(std::string_view word, const ChipFacts& chip, Features& features) {
  if (word == kStepK8) return (chip.features & kStep) != 0 ? &features.step : nullptr;
  if (!word.ends_with('+') && !word.ends_with('-')) return nullptr;
  word.remove_suffix(1);
  if (word == "sramecc" && (chip.features & kSramecc) != 0) return &features.sramecc;
  if (word == "xnack" && (chip.features & kXnack) != 0) return &features.xnack;
  return nullptr;
}

// Reads ":xnack-:sramecc+", in any order.
Result<Features> read_features(const ChipFacts& chip, std::string_view words,
                               std::string_view whole) {
  Features features;
  while (!words.empty()) {
    words.remove_prefix(1);  // The colon.
    const std::string_view word = words.substr(0, words.find(':'));
    words.remove_prefix(word.size());
    std::string* const place = place_of(word, chip, features);
    if (place == nullptr || !place->empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("target \"{}\": feature \"{}\" does not apply to {}: {}", whole,
                               word, chip.name, features_of(chip)),
                   ""};
    }
    *place = fmt::format(":{}", word);
  }
  return features;
}

}  // namespace

Result<Target> parse_target(std::string_view name) {
  // "host" and "host:step=k8" are this machine's.
  const bool native = name == "host" || name.starts_with("host:");
  const std::string whole =
      native ? fmt::format("{}{}", native_host_target(), name.substr(4)) : std::string(name);
  const std::string_view chip_name = std::string_view(whole).substr(0, whole.find(':'));
  const ChipFacts* const chip = find_chip(chip_name);
  if (chip == nullptr) return unknown(name);
  const auto features =
      read_features(*chip, std::string_view(whole).substr(chip_name.size()), name);
  if (!features) return features.error();
  // In the order that AMD's compilers print.
  const std::string of_amd = features->sramecc + features->xnack;

  Target target;
  target.name = std::string(chip->name) + of_amd + features->step;
  target.vendor = chip->vendor;
  target.arch = std::string(chip->arch) + of_amd;
  target.warp_width = chip->warp_width;
  target.matrix_step = features->step.empty() ? chip->matrix_step : MatrixStep::kTwoK8;
  target.max_shared_bytes = chip->max_shared_bytes;
  target.registers_per_block = chip->registers_per_block;
  target.least_driver = chip->least_driver;
  return target;
}

std::span<const std::string_view> known_targets() { return kNames; }

std::string_view native_host_target() {
#if defined(__aarch64__)
  return "host-aarch64";
#else
  return "host-x86-64-v3";
#endif
}

std::string_view host_target_modelling(const Target& target) {
  return target.matrix_step == MatrixStep::kTwoK8 ? "host:step=k8" : "host";
}

}  // namespace broach::specializer
