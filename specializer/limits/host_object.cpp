#include "specializer/limits/host_object.hpp"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "kernel_src/host/abi.h"
#include "specializer/limits/elf_image.hpp"
#include "specializer/limits/geometry.hpp"

namespace broach::specializer {
namespace {

Error damaged(std::string message) {
  return Error{ErrorCode::kDamaged, "host object: " + std::move(message), ""};
}

Result<LaunchLimits> limits_of(const ElfImage& image, const std::string& function,
                               const Target& target) {
  const std::string name = BROACH_HOST_RECORD_PREFIX + function;
  const auto symbol = std::find_if(
      image.dynamic_symbols.begin(), image.dynamic_symbols.end(),
      [&](const ElfImage::Symbol& each) { return each.section != SHN_UNDEF && each.name == name; });
  if (symbol == image.dynamic_symbols.end()) {
    return damaged(fmt::format("it exports no \"{}\"", name));
  }
  const auto bytes = image.at_address(symbol->value, sizeof(BroachHostRecord));
  if (!bytes) return damaged(fmt::format("\"{}\" lies outside its sections", name));
  BroachHostRecord record;
  std::memcpy(&record, bytes->data(), sizeof record);
  if (record.magic != BROACH_HOST_MAGIC || record.abi_version != BROACH_HOST_ABI_VERSION) {
    return damaged(fmt::format(
        "\"{}\" has magic {:#x} and version {}; this library reads {:#x} "
        "and {}",
        name, record.magic, record.abi_version, BROACH_HOST_MAGIC, BROACH_HOST_ABI_VERSION));
  }
  LaunchLimits limits;
  limits.function = function;
  limits.source = "host object record";
  limits.static_shared = record.static_shared_bytes;
  limits.max_dynamic_shared =
      target.max_shared_bytes - std::min(target.max_shared_bytes, record.static_shared_bytes);
  limits.launch_bounds = record.block_threads;
  limits.max_threads = std::min(target.max_threads_per_block, record.block_threads);
  limits.wave_size = target.warp_width;
  limits.parameter_bytes = {record.params_bytes};
  if (auto fault = take_geometry_at_address(image, limits)) return damaged(*std::move(fault));
  return limits;
}

}  // namespace

Result<std::vector<LaunchLimits>> read_host_object(std::span<const KernelEntry> entries,
                                                   const Target& target,
                                                   std::span<const std::byte> binary) {
  auto image = ElfImage::read(binary);
  if (!image) return damaged(image.error().message);
  const std::uint16_t machine = target.name == "host-aarch64" ? EM_AARCH64 : EM_X86_64;
  if (image->machine != machine) {
    return damaged(
        fmt::format("ELF machine {} is not {}'s {}", image->machine, target.name, machine));
  }
  std::vector<LaunchLimits> rows;
  rows.reserve(entries.size());
  for (const KernelEntry& entry : entries) {
    auto limits = limits_of(*image, entry.function, target);
    if (!limits) return limits.error();
    rows.push_back(std::move(*limits));
  }
  return rows;
}

}  // namespace broach::specializer
