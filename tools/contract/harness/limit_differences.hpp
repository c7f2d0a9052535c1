#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broach/types.hpp"

namespace broach::contract {

struct LimitReport;

/// A figure that two statements of a function's limits both make, and make differently.
struct FieldDifference {
  std::string_view field;
  std::uint32_t before = 0;
  std::uint32_t after = 0;
};

/// A function of one kernel that two toolchains' binaries for one target need different limits for:
/// a fact about the compilers, no problem. `broach diff` has the same as rows.
struct LimitDifference {
  std::string target;
  std::string function;
  std::string kernel;  ///< Its plan's shape, as JSON.
  std::string before;  ///< The compiler that `fields` have first, as loaded.
  std::string after;
  std::vector<FieldDifference> fields;
};

/// The fields in which two statements differ; fields that either side does not state are left out.
std::vector<FieldDifference> differences(const LaunchLimits& a, const LaunchLimits& b);

/// "registers 64 and 60, sgprs 40 and 38"; empty when nothing differs.
std::string words_of(const std::vector<FieldDifference>& fields);

/// What differs between the toolchains that compiled for the same target, in the reports' order.
std::vector<LimitDifference> toolchain_differences(const std::vector<LimitReport>& reports);

}  // namespace broach::contract
