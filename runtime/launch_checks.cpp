#include "runtime/launch_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace broach::runtime {
namespace {

/// Digits in groups of three: 79872 -> "79,872".
std::string grouped(std::uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t at = 0; at < digits.size(); ++at) {
    if (at > 0 && (digits.size() - at) % 3 == 0) text += ',';
    text += digits[at];
  }
  return text;
}

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// A warp's registers are handed out in units of 256 on every NVIDIA chip since sm_30: 8 a thread.
constexpr std::uint64_t kRegisterUnit = 8;

std::string register_excess(const LaunchLimits& limits, std::uint64_t threads,
                            const specializer::Target& target) {
  const std::uint64_t file = target.registers_per_block;
  if (target.vendor != specializer::Vendor::kNvidia || file == 0 || !limits.registers) return {};
  const std::uint64_t registers = *limits.registers;
  if (registers * threads > file) {
    return fmt::format("{} registers x {} threads = {} exceed the chip's {}", registers, threads,
                       grouped(registers * threads), grouped(file));
  }
  const std::uint64_t each = round_up(registers, kRegisterUnit);
  const std::uint64_t lanes = round_up(threads, target.warp_width);
  if (each * lanes > file) {
    return fmt::format("{} registers x {} threads, allocated as {} x {} = {}, exceed the chip's {}",
                       registers, threads, each, lanes, grouped(each * lanes), grouped(file));
  }
  return {};
}

std::string shared_excess(const LaunchLimits& limits, std::uint64_t dynamic,
                          const specializer::Target& target) {
  const std::uint64_t fixed = limits.static_shared.value_or(0);
  if (target.max_shared_bytes != 0 && fixed + dynamic > target.max_shared_bytes) {
    return fmt::format(
        "{} static + {} dynamic bytes of shared memory = {} exceed the chip's limit of {} a block",
        grouped(fixed), grouped(dynamic), grouped(fixed + dynamic),
        grouped(target.max_shared_bytes));
  }
  if (limits.max_dynamic_shared && dynamic > *limits.max_dynamic_shared) {
    return fmt::format("{} bytes of dynamic shared memory exceed the binary's {}", grouped(dynamic),
                       grouped(*limits.max_dynamic_shared));
  }
  return {};
}

std::string thread_excess(const LaunchLimits& limits, std::uint64_t threads,
                          const specializer::Target& target) {
  const auto over = [&](std::uint64_t bound, const char* whose) {
    return fmt::format("{} threads a block exceed {} {}", grouped(threads), whose, grouped(bound));
  };
  if (threads > target.max_threads_per_block) {
    return over(target.max_threads_per_block, "the chip's");
  }
  if (limits.launch_bounds && threads > *limits.launch_bounds) {
    return over(*limits.launch_bounds, "the launch bound promised to the compiler,");
  }
  if (limits.max_threads && threads > *limits.max_threads) {
    return over(*limits.max_threads, "the binary's maximum of");
  }
  return {};
}

/// Whether a block of so many threads with so much dynamic shared memory fits, in words if not.
std::string block_excess(const LaunchLimits& limits, std::uint64_t threads, std::uint64_t dynamic,
                         const specializer::Target& target) {
  // The register file first: it is the cause where the binary's maximum is its consequence.
  std::string excess = register_excess(limits, threads, target);
  if (excess.empty()) excess = thread_excess(limits, threads, target);
  if (excess.empty()) excess = shared_excess(limits, dynamic, target);
  return excess;
}

using Dims = std::uint32_t[3];

std::string words_of(const Dims& dims) {
  return fmt::format("{} x {} x {}", dims[0], dims[1], dims[2]);
}

std::uint64_t stated_threads(const LaunchLimits& limits) {
  if (!limits.block_x || !limits.block_y || !limits.block_z) return 0;
  return std::uint64_t{*limits.block_x} * *limits.block_y * *limits.block_z;
}

/// The largest grid and block along each dimension. AMD counts a grid in threads, 32 bits wide.
struct DimBounds {
  std::uint64_t grid[3];
  std::uint64_t block[3];
};

DimBounds bounds_of(const specializer::Target& target) {
  constexpr std::uint64_t kWord = 0xffffffff;
  switch (target.vendor) {
    case specializer::Vendor::kNvidia:
      return {{0x7fffffff, 65535, 65535}, {1024, 1024, 64}};
    case specializer::Vendor::kAmd:
    case specializer::Vendor::kHost:
      break;
  }
  return {{kWord, kWord, kWord}, {1024, 1024, 1024}};
}

/// The number of an NVIDIA chip: 90 of "sm_90a"; 0 of any other.
unsigned chip_number(const specializer::Target& target) {
  unsigned number = 0;
  if (target.vendor != specializer::Vendor::kNvidia) return 0;
  for (const char c : target.name) {
    if (c >= '0' && c <= '9') number = number * 10 + static_cast<unsigned>(c - '0');
  }
  return number;
}

/// Finds what is wrong with one launch; what is not wrong costs a few comparisons.
class LaunchCheck {
 public:
  LaunchCheck(const LaunchConfig& config, const LaunchLimits& limits,
              const specializer::Target& target) noexcept
      : config_(config), limits_(limits), target_(target) {}

  Result<void> all(std::span<const std::uint32_t> argument_bytes) const {
    if (auto fits = dims(); !fits) return fits;
    if (auto same = block(); !same) return same;
    if (auto same = shared(); !same) return same;
    if (auto fits = cluster(); !fits) return fits;
    return parameters(argument_bytes);
  }

 private:
  Error refuse(ErrorCode code, std::string_view words) const {
    return Error{
        code, fmt::format("{} cannot launch on {}: {}", limits_.function, target_.name, words), {}};
  }
  Error differs(std::string_view words) const { return refuse(ErrorCode::kInvalidArgument, words); }

  Result<void> dims() const {
    const DimBounds bounds = bounds_of(target_);
    for (int i = 0; i < 3; ++i) {
      if (config_.grid[i] == 0) {
        return differs(fmt::format("a grid of {} blocks is empty", words_of(config_.grid)));
      }
      if (config_.block[i] == 0) {
        return differs(fmt::format("a block of {} threads is empty", words_of(config_.block)));
      }
      std::uint64_t blocks = config_.grid[i];
      if (target_.vendor == specializer::Vendor::kAmd) blocks *= config_.block[i];
      if (blocks > bounds.grid[i]) return large_grid(i, blocks, bounds.grid[i]);
      if (config_.block[i] > bounds.block[i]) {
        return refuse(ErrorCode::kLimitExceeded,
                      fmt::format("a block of {} threads exceeds the chip's {} along {}",
                                  words_of(config_.block), grouped(bounds.block[i]), "xyz"[i]));
      }
    }
    return {};
  }

  Error large_grid(int dim, std::uint64_t value, std::uint64_t bound) const {
    const bool amd = target_.vendor == specializer::Vendor::kAmd;
    return refuse(ErrorCode::kLimitExceeded,
                  fmt::format("a grid of {} blocks has {} {} along {}; the chip's bound is {}",
                              words_of(config_.grid), grouped(value), amd ? "threads" : "blocks",
                              "xyz"[dim], grouped(bound)));
  }

  Result<void> block() const {
    const Dims stated{limits_.block_x.value_or(config_.block[0]),
                      limits_.block_y.value_or(config_.block[1]),
                      limits_.block_z.value_or(config_.block[2])};
    if (stated[0] != config_.block[0] || stated[1] != config_.block[1] ||
        stated[2] != config_.block[2]) {
      return differs(fmt::format("a block of {} threads is not the {} that the kernel states",
                                 words_of(config_.block), words_of(stated)));
    }
    const std::uint64_t threads =
        std::uint64_t{config_.block[0]} * config_.block[1] * config_.block[2];
    const std::string excess =
        block_excess(limits_, threads, config_.dynamic_shared_bytes, target_);
    if (excess.empty()) return {};
    return refuse(ErrorCode::kLimitExceeded, excess);
  }

  Result<void> shared() const {
    const std::uint32_t given = config_.dynamic_shared_bytes;
    if (limits_.dynamic_shared.value_or(given) == given) return {};
    return differs(
        fmt::format("{} bytes of dynamic shared memory are not the {} that the kernel "
                    "states",
                    grouped(given), grouped(*limits_.dynamic_shared)));
  }

  Result<void> cluster() const {
    const Dims& given = config_.cluster;
    const Dims stated{limits_.cluster_x.value_or(given[0]), limits_.cluster_y.value_or(given[1]),
                      limits_.cluster_z.value_or(given[2])};
    const bool any = given[0] != 0 || given[1] != 0 || given[2] != 0;
    if (stated[0] != given[0] || stated[1] != given[1] || stated[2] != given[2]) {
      const std::string words =
          any ? fmt::format("a cluster of {} blocks is", words_of(given)) : "no cluster is";
      return differs(fmt::format("{} not the {} that the kernel states", words, words_of(stated)));
    }
    if (!any) return {};
    // The least chip with clusters, and the most blocks one has where the driver was told.
    constexpr unsigned kLeastChip = 90, kMostBlocks = 16;
    if (chip_number(target_) < kLeastChip) {
      return refuse(ErrorCode::kUnsupported,
                    fmt::format("a cluster of {} blocks; NVIDIA's chips have clusters from sm_{} "
                                "on, others have none",
                                words_of(given), kLeastChip));
    }
    std::uint64_t blocks = 1;
    for (int i = 0; i < 3; ++i) {
      if (given[i] == 0 || config_.grid[i] % given[i] != 0) {
        return differs(fmt::format("a grid of {} blocks is no multiple of the cluster's {}",
                                   words_of(config_.grid), words_of(given)));
      }
      blocks *= std::min(given[i], kMostBlocks + 1);
    }
    if (blocks <= kMostBlocks) return {};
    return refuse(
        ErrorCode::kLimitExceeded,
        fmt::format("a cluster of {} blocks exceeds the chip's {}", words_of(given), kMostBlocks));
  }

  Result<void> parameters(std::span<const std::uint32_t> argument_bytes) const {
    if (!limits_.parameter_bytes) return {};
    const std::vector<std::uint32_t>& takes = *limits_.parameter_bytes;
    if (config_.params != nullptr) {
      if (takes.size() == 1 && takes[0] == config_.params_bytes) return {};
      return differs(fmt::format("a struct of {} bytes for {}", grouped(config_.params_bytes),
                                 words_of_parameters(takes)));
    }
    if (config_.arguments.size() != takes.size()) {
      return differs(
          fmt::format("{} arguments for {}", config_.arguments.size(), words_of_parameters(takes)));
    }
    const std::size_t known = std::min(argument_bytes.size(), takes.size());
    for (std::size_t i = 0; i < known; ++i) {
      if (argument_bytes[i] == takes[i]) continue;
      return differs(fmt::format("argument {} has {} bytes; the parameter has {}", i,
                                 grouped(argument_bytes[i]), grouped(takes[i])));
    }
    return {};
  }

  static std::string words_of_parameters(const std::vector<std::uint32_t>& takes) {
    if (takes.empty()) return "a function without parameters";
    std::string words =
        fmt::format("{} parameter{} of ", takes.size(), takes.size() > 1 ? "s" : "");
    for (std::size_t i = 0; i < takes.size(); ++i) {
      words += fmt::format("{}{}", i == 0 ? "" : i + 1 < takes.size() ? ", " : " and ", takes[i]);
    }
    return words + " bytes";
  }

  const LaunchConfig& config_;
  const LaunchLimits& limits_;
  const specializer::Target& target_;
};

}  // namespace

Result<void> check_launch(const specializer::KernelEntry& entry, const LaunchLimits& limits,
                          const specializer::Target& target) {
  const std::uint64_t threads =
      entry.block_threads != 0 ? entry.block_threads : stated_threads(limits);
  if (threads == 0) return {};
  const std::uint32_t dynamic = entry.dynamic_shared_bytes != 0 ? entry.dynamic_shared_bytes
                                                                : limits.dynamic_shared.value_or(0);
  const std::string excess = block_excess(limits, threads, dynamic, target);
  if (excess.empty()) return {};
  return Error{ErrorCode::kLimitExceeded,
               fmt::format("{} cannot launch on {}: {}", entry.function, target.name, excess),
               {}};
}

void take_stated_geometry(LaunchConfig& config, const LaunchLimits& limits) noexcept {
  if (config.block[0] == 0 && limits.block_x) {
    config.block[0] = *limits.block_x;
    config.block[1] = limits.block_y.value_or(1);
    config.block[2] = limits.block_z.value_or(1);
  }
  if (config.dynamic_shared_bytes == 0) {
    config.dynamic_shared_bytes = limits.dynamic_shared.value_or(0);
  }
  if (config.cluster[0] == 0 && limits.cluster_x) {
    config.cluster[0] = *limits.cluster_x;
    config.cluster[1] = limits.cluster_y.value_or(1);
    config.cluster[2] = limits.cluster_z.value_or(1);
  }
}

Result<void> check_launch(const LaunchConfig& config, const LaunchLimits& limits,
                          const specializer::Target& target,
                          std::span<const std::uint32_t> argument_bytes) {
  return LaunchCheck(config, limits, target).all(argument_bytes);
}

}  // namespace broach::runtime
