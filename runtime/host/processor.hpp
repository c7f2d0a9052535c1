#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace broach::runtime::host {

/// What a processor and its operating system say they offer, as CPUID and XGETBV give it.
struct ProcessorFeatures {
  std::uint32_t leaf_1_ecx = 0;
  std::uint32_t leaf_7_ebx = 0;
  std::uint32_t leaf_80000001_ecx = 0;
  std::uint64_t saved_state = 0;  ///< XCR0: the registers that a task switch keeps.
};

/// This processor's; all zero where it is no x86-64.
ProcessorFeatures processor_features();

/// What x86-64-v3 needs and `features` lacks, as "avx2, fma"; empty when nothing is missing.
std::string missing_for_x86_64_v3(const ProcessorFeatures& features);

/// Why this processor cannot run a host target's code; empty when it can.
///
/// Shapes:  `target` is a target's name, as "host-x86-64-v3:step=k8".
std::string why_not_runnable(std::string_view target);

}  // namespace broach::runtime::host
