#include "specializer/limits/geometry.hpp"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "kernel_src/broach/launch_geometry.h"

namespace broach::specializer {
namespace {

using Dims = std::array<std::optional<std::uint32_t> LaunchLimits::*, 3>;
constexpr Dims kBlock{&LaunchLimits::block_x, &LaunchLimits::block_y, &LaunchLimits::block_z};
constexpr Dims kCluster{&LaunchLimits::cluster_x, &LaunchLimits::cluster_y,
                        &LaunchLimits::cluster_z};

// No chip has a block of more threads, or a cluster of more blocks, along one dimension. What a
// chip has in all is the launch check's concern.
constexpr std::uint32_t kMostThreads = 1024, kMostBlocks = 16;

std::string words_of(const unsigned (&dims)[3]) {
  return fmt::format("{} x {} x {}", dims[0], dims[1], dims[2]);
}

bool within(const unsigned (&dims)[3], std::uint32_t most) {
  return std::all_of(std::begin(dims), std::end(dims),
                     [&](unsigned size) { return size >= 1 && size <= most; });
}

// Sets three dimensions, unless the code was compiled for others.
bool take_dims(const unsigned (&dims)[3], const Dims& members, LaunchLimits& limits) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto& member = limits.*members[i];
    if (member.value_or(dims[i]) != dims[i]) return false;
    member = dims[i];
  }
  return true;
}

}  // namespace

std::string geometry_name(std::string_view function) {
  return BROACH_GEOMETRY_PREFIX + std::string(function);
}

std::optional<std::string> take_geometry(std::span<const std::byte> bytes, LaunchLimits& limits) {
  const std::string name = geometry_name(limits.function);
  BroachLaunchGeometry record;
  // A sanitizer may pad a variable.
  if (bytes.size() < sizeof record) {
    return fmt::format("\"{}\" has {} bytes; the record has {}", name, bytes.size(), sizeof record);
  }
  std::memcpy(&record, bytes.data(), sizeof record);
  if (record.magic != BROACH_GEOMETRY_MAGIC || record.version != BROACH_GEOMETRY_VERSION) {
    return fmt::format("\"{}\" has magic {:#x} and version {}; this library reads {:#x} and {}",
                       name, record.magic, record.version, BROACH_GEOMETRY_MAGIC,
                       BROACH_GEOMETRY_VERSION);
  }
  if (std::any_of(std::begin(record.reserved), std::end(record.reserved),
                  [](unsigned word) { return word != 0; })) {
    return fmt::format("\"{}\" has something in its reserved words", name);
  }
  if (!within(record.block, kMostThreads)) {
    return fmt::format("\"{}\" states a block of {} threads; each is 1 to {}", name,
                       words_of(record.block), kMostThreads);
  }
  if (!take_dims(record.block, kBlock, limits)) {
    return fmt::format("\"{}\" states a block of {} threads; the code was compiled for another",
                       name, words_of(record.block));
  }
  const bool clustered = std::any_of(std::begin(record.cluster), std::end(record.cluster),
                                     [](unsigned size) { return size != 0; });
  if (clustered && !within(record.cluster, kMostBlocks)) {
    return fmt::format("\"{}\" states a cluster of {} blocks; each is 1 to {}", name,
                       words_of(record.cluster), kMostBlocks);
  }
  if (clustered && !take_dims(record.cluster, kCluster, limits)) {
    return fmt::format("\"{}\" states a cluster of {} blocks; the code was compiled for another",
                       name, words_of(record.cluster));
  }
  if (record.dynamic_shared_bytes != BROACH_GEOMETRY_AT_LAUNCH) {
    limits.dynamic_shared = record.dynamic_shared_bytes;
  }
  return std::nullopt;
}

std::optional<std::string> take_geometry_at_address(const ElfImage& image, LaunchLimits& limits) {
  const std::string name = geometry_name(limits.function);
  for (const auto* symbols : {&image.dynamic_symbols, &image.symbols}) {
    const auto symbol =
        std::find_if(symbols->begin(), symbols->end(), [&](const ElfImage::Symbol& each) {
          return each.section != SHN_UNDEF && each.type == STT_OBJECT && each.name == name;
        });
    if (symbol == symbols->end()) continue;
    const auto bytes = image.at_address(symbol->value, symbol->size);
    if (!bytes) return fmt::format("\"{}\" lies outside its sections", name);
    return take_geometry(*bytes, limits);
  }
  return std::nullopt;
}

}  // namespace broach::specializer
