#pragma once

#include <cstdint>
#include <vector>

#include "runtime/load_plan.hpp"
#include "specializer/plan.hpp"
#include "tools/contract/harness/bench.hpp"
#include "tools/contract/harness/device_memory.hpp"
#include "tools/contract/qk_rows/problem.hpp"

namespace broach::contract::qk_rows {

/// One shape's kernel on a bench.
///
/// Owns:    the loaded module; the bench outlives it.
class Kernel {
 public:
  static Result<Kernel> load(const Bench& bench, const QkRowsShape& shape,
                             const specializer::Variant& variant = {});

  const cache::Key& key() const noexcept { return loaded_.artifact.object->key.key; }
  const Bench& bench() const noexcept { return bench_; }
  const QkRowsShape& shape() const noexcept { return shape_; }

  /// Uploads a problem, launches once over poisoned outputs and caches, and gathers each row's
  /// prepared heads: [rows][heads of a row][D].
  ///
  /// Errors:  the device's; kInternal when a cell that no row owns, or a guard, was overwritten.
  Result<std::vector<std::uint16_t>> run(const Problem& problem, Poison poison = Poison::kNan,
                                         std::uint32_t splits = 1) const;

 private:
  Bench bench_;
  QkRowsShape shape_;
  specializer::Plan plan_;
  runtime::LoadedPlan loaded_;
};

}  // namespace broach::contract::qk_rows
