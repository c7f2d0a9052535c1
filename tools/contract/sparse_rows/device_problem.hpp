#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "broach/sparse_rows.hpp"
#include "tools/contract/harness/device_memory.hpp"
#include "tools/contract/sparse_rows/problem.hpp"

namespace broach::contract::sparse_rows {

/// A problem in a device's memory, its cache as the shape's layout has it. Keys that no row
/// selected hold NaN there.
///
/// Owns:    the memory; the device outlives it.
class DeviceProblem {
 public:
  /// Errors:  the device's.
  static Result<DeviceProblem> upload(runtime::Device& device, const Problem& problem,
                                      std::size_t workspace_bytes);

  const broach_sparse_rows_args& args() const noexcept { return args_; }

  /// Fills the outputs and the workspace with a poison, guards included.
  Result<void> poison(Poison poison);

  /// What a launch left: [rows][H][D] of the queries' type.
  ///
  /// Errors:  the device's; kInternal when a guard was overwritten.
  Result<std::vector<std::byte>> outputs() const;

 private:
  DeviceProblem() = default;

  std::vector<DeviceBytes> copies_;
  std::optional<GuardedBytes> out_, workspace_;
  SparseRowsArgs args_;
};

}  // namespace broach::contract::sparse_rows
