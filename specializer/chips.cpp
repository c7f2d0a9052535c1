#include "specializer/chips.hpp"

#include <algorithm>
#include <iterator>

namespace broach::specializer {
namespace {

constexpr std::uint32_t kKiB = 1024;

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and
// cuda_occupancy.h: shared memory is the SM's less 1 KiB that the system keeps from sm_80 on; every
// listed chip has 64 Ki registers a block.
constexpr std::uint32_t kNvidiaRegisters = 64 * 1024;
constexpr std::uint32_t kNvidiaLarge = 227 * kKiB;
constexpr std::uint32_t kNvidiaMiddle = 163 * kKiB;
constexpr std::uint32_t kNvidiaSmall = 99 * kKiB;
constexpr std::uint32_t kTuringShared = 64 * kKiB;

// AMD's ISA guides: 64 KiB of LDS a workgroup (160 on gfx950). The VGPR file a workgroup can reach
// is four SIMDs': 512 x 64 lanes on CDNA 2 and later, half of that on what came before (whose
// accumulation registers ordinary code does not use), 1,024 or 1,536 x 32 lanes on RDNA.
constexpr std::uint32_t kGcnRegisters = 4 * 256 * 64;
constexpr std::uint32_t kCdnaRegisters = 4 * 512 * 64;
constexpr std::uint32_t kRdnaRegisters = 4 * 1024 * 32;
constexpr std::uint32_t kLargeRdnaRegisters = 4 * 1536 * 32;
constexpr std::uint32_t kAmdShared = 64 * kKiB;
constexpr std::uint32_t kGfx950Shared = 160 * kKiB;

// The host has neither limit. Shared memory is bounded as on sm_90, so that a plan the largest
// chips can launch has a host form and one that no chip can launch has none.
constexpr std::uint32_t kHostShared = kNvidiaLarge;

constexpr std::uint8_t kBoth = kSramecc | kXnack;

constexpr Chip nvidia(std::string_view name, MmaStep step, std::uint32_t shared, Version driver) {
  return {name, Vendor::kNvidia, name, 32, step, shared, kNvidiaRegisters, driver};
}

// sm_75's mma has neither bf16 nor k16.
constexpr Chip turing(std::string_view name, Version driver) {
  return nvidia(name, MmaStep::kNone, kTuringShared, driver);
}

constexpr Chip ampere(std::string_view name, std::uint32_t shared, Version driver) {
  return nvidia(name, MmaStep::kTwoK8, shared, driver);
}

constexpr Chip hopper(std::string_view name, std::uint32_t shared, Version driver) {
  return nvidia(name, MmaStep::kOneK16, shared, driver);
}

constexpr Chip gcn(std::string_view name, std::uint8_t features = kNoFeatures) {
  return {name, Vendor::kAmd, name, 64, MmaStep::kNone, kAmdShared, kGcnRegisters, {}, features};
}

constexpr Chip cdna(std::string_view name, std::uint32_t registers,
                    std::uint32_t shared = kAmdShared) {
  return {name, Vendor::kAmd, name, 64, MmaStep::kMfma, shared, registers, {}, kBoth};
}

constexpr Chip rdna(std::string_view name, std::uint8_t features = kNoFeatures) {
  return {name, Vendor::kAmd, name, 32, MmaStep::kNone, kAmdShared, kRdnaRegisters, {}, features};
}

constexpr Chip rdna3(std::string_view name, std::uint32_t registers) {
  return {name, Vendor::kAmd, name, 32, MmaStep::kWmma, kAmdShared, registers, {}};
}

constexpr Chip host(std::string_view name, std::string_view arch) {
  return {name, Vendor::kHost, arch, 32, MmaStep::kOneK16, kHostShared, 0, {}, kStep};
}

// A name with an `a` has the chip's own instructions and runs on that chip alone; one with an `f`
// those of its family, whose later chips it runs on; the plain one runs on every later chip of its
// major version.
constexpr Chip kChips[] = {
    turing("sm_75", {10, 0}),
    ampere("sm_80", kNvidiaMiddle, {11, 0}),
    ampere("sm_86", kNvidiaSmall, {11, 1}),
    ampere("sm_87", kNvidiaMiddle, {11, 4}),
    ampere("sm_88", kNvidiaSmall, {13, 0}),
    ampere("sm_89", kNvidiaSmall, {11, 8}),
    hopper("sm_90", kNvidiaLarge, {11, 8}),
    hopper("sm_90a", kNvidiaLarge, {12, 0}),
    hopper("sm_100", kNvidiaLarge, {12, 8}),
    hopper("sm_100a", kNvidiaLarge, {12, 8}),
    hopper("sm_100f", kNvidiaLarge, {12, 9}),
    hopper("sm_103", kNvidiaLarge, {12, 9}),
    hopper("sm_103a", kNvidiaLarge, {12, 9}),
    hopper("sm_103f", kNvidiaLarge, {12, 9}),
    hopper("sm_110", kNvidiaLarge, {13, 0}),
    hopper("sm_110a", kNvidiaLarge, {13, 0}),
    hopper("sm_110f", kNvidiaLarge, {13, 0}),
    hopper("sm_120", kNvidiaSmall, {12, 8}),
    hopper("sm_120a", kNvidiaSmall, {12, 8}),
    hopper("sm_120f", kNvidiaSmall, {12, 9}),
    hopper("sm_121", kNvidiaSmall, {12, 9}),
    hopper("sm_121a", kNvidiaSmall, {12, 9}),
    hopper("sm_121f", kNvidiaSmall, {12, 9}),

    gcn("gfx801", kXnack),
    gcn("gfx802"),
    gcn("gfx803"),
    gcn("gfx805"),
    gcn("gfx810", kXnack),
    gcn("gfx900", kXnack),
    gcn("gfx902", kXnack),
    gcn("gfx904", kXnack),
    gcn("gfx906", kBoth),
    cdna("gfx908", kGcnRegisters),
    gcn("gfx909", kXnack),
    cdna("gfx90a", kCdnaRegisters),
    gcn("gfx90c", kXnack),
    cdna("gfx942", kCdnaRegisters),
    cdna("gfx950", kCdnaRegisters, kGfx950Shared),
    rdna("gfx1010", kXnack),
    rdna("gfx1011", kXnack),
    rdna("gfx1012", kXnack),
    rdna("gfx1013", kXnack),
    rdna("gfx1030"),
    rdna("gfx1031"),
    rdna("gfx1032"),
    rdna("gfx1033"),
    rdna("gfx1034"),
    rdna("gfx1035"),
    rdna("gfx1036"),
    rdna3("gfx1100", kLargeRdnaRegisters),
    rdna3("gfx1101", kLargeRdnaRegisters),
    rdna3("gfx1102", kRdnaRegisters),
    rdna3("gfx1103", kRdnaRegisters),
    rdna3("gfx1150", kRdnaRegisters),
    rdna3("gfx1151", kLargeRdnaRegisters),
    rdna3("gfx1152", kRdnaRegisters),
    rdna3("gfx1153", kRdnaRegisters),
    rdna3("gfx1200", kLargeRdnaRegisters),
    rdna3("gfx1201", kLargeRdnaRegisters),

    host("host-x86-64-v3", "x86-64-v3"),
    host("host-aarch64", "armv8-a"),
};

// What compilers state without broach having it.
struct NoTarget {
  std::string_view begins;
  std::string_view ends;
  std::string_view why;
};

constexpr std::string_view kNoExchange =
    "the exchange between lanes that HIP's shuffles are made of begins with gfx8";

constexpr NoTarget kNoTargets[] = {
    {"gfx6", "", kNoExchange},
    {"gfx7", "", kNoExchange},
    {"gfx", "-generic", "the packages that state it hold no device library for it"},
};

}  // namespace

std::span<const Chip> chips() { return kChips; }

std::string_view why_no_target(std::string_view name) {
  for (const NoTarget& one : kNoTargets) {
    if (name.starts_with(one.begins) && name.ends_with(one.ends)) return one.why;
  }
  return {};
}

const Chip* find_chip(std::string_view name) {
  const auto* const chip = std::find_if(std::begin(kChips), std::end(kChips),
                                        [&](const Chip& each) { return each.name == name; });
  return chip == std::end(kChips) ? nullptr : chip;
}

}  // namespace broach::specializer
