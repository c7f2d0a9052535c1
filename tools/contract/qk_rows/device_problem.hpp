#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broach/qk_rows.hpp"
#include "tools/contract/harness/device_memory.hpp"
#include "tools/contract/qk_rows/problem.hpp"

namespace broach::contract::qk_rows {

/// A problem in a device's memory, its caches as the shape's layout has them.
///
/// Owns:    the memory; the device outlives it.
class DeviceProblem {
 public:
  /// Errors:  the device's.
  static Result<DeviceProblem> upload(runtime::Device& device, const Problem& problem);

  const broach_qk_rows_args& args() const noexcept { return args_; }

  /// Fills the outputs and the caches with a poison, guards included.
  Result<void> poison(Poison poison);

  /// Gathers each row's prepared heads after a launch over that poison: [rows][heads of a row][D].
  ///
  /// Errors:  the device's; kInternal when a cell that no row owns, or a guard, was overwritten.
  Result<std::vector<std::uint16_t>> outputs(Poison poison) const;

 private:
  DeviceProblem() = default;

  std::size_t rows_ = 0;
  std::size_t row_queries_ = 0;  ///< Elements of a row's query heads.
  std::size_t row_keys_ = 0;     ///< Elements of its K heads, and of its V heads.
  std::vector<std::size_t> cell_of_row_;
  std::vector<DeviceBytes> copies_;
  std::vector<GuardedBytes> written_;  ///< q, and the caches of k and v.
  QkRowsArgs args_;
};

}  // namespace broach::contract::qk_rows
