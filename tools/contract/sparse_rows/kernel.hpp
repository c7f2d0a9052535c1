#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broach/result.hpp"
#include "runtime/load_plan.hpp"
#include "specializer/plan.hpp"
#include "tools/contract/harness/bench.hpp"
#include "tools/contract/harness/device_memory.hpp"
#include "tools/contract/sparse_rows/problem.hpp"

namespace broach::contract::sparse_rows {

/// Who folds the parts of `tile=scalar`; `mma` has one way.
enum class Splits : std::uint8_t { kOne, kPartEach };

/// One shape's kernel on a bench.
///
/// Owns:    the loaded module; the bench outlives it.
class Kernel {
 public:
  static Result<Kernel> load(const Bench& bench, const SparseRowsShape& shape,
                             const specializer::Variant& variant = {});

  const cache::Key& key() const noexcept { return loaded_.artifact.object->key.key; }
  const Bench& bench() const noexcept { return bench_; }
  const SparseRowsShape& shape() const noexcept { return shape_; }

  /// Uploads a problem, launches once over poisoned outputs and workspace, and brings the outputs
  /// back: [rows][H][D] of their type.
  ///
  /// Errors:  the device's; kInternal when a guard was overwritten.
  Result<std::vector<std::byte>> run(const Problem& problem, Poison poison = Poison::kNan,
                                     Splits splits = Splits::kOne) const;

 private:
  Bench bench_;
  SparseRowsShape shape_;
  specializer::Plan plan_;
  runtime::LoadedPlan loaded_;
};

}  // namespace broach::contract::sparse_rows
