#include "runtime/launch_checks.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <string>

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

}  // namespace

Result<void> check_launch(const specializer::KernelEntry& entry, const LaunchLimits& limits,
                          const specializer::Target& target) {
  if (entry.block_threads == 0) {
    return Error{ErrorCode::kInternal, fmt::format("{} has no block size", entry.function), {}};
  }
  // The register file first: it is the cause where the binary's maximum is its consequence.
  std::string excess = register_excess(limits, entry.block_threads, target);
  if (excess.empty()) excess = thread_excess(limits, entry.block_threads, target);
  if (excess.empty()) excess = shared_excess(limits, entry.dynamic_shared_bytes, target);
  if (excess.empty()) return {};
  return Error{ErrorCode::kLimitExceeded,
               fmt::format("{} cannot launch on {}: {}", entry.function, target.name, excess),
               {}};
}

}  // namespace broach::runtime
