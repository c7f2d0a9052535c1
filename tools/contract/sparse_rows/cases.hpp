#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/contract/harness/sweep.hpp"
#include "tools/contract/sparse_rows/problem.hpp"

namespace broach::contract::sparse_rows {

/// Which other kernels have to give a case's bits: the generic one and another layout's, or the
/// generic one alone, where another case of its tile tries the layouts.
enum class Twins : std::uint8_t { kAll, kGeneric };

struct CaseSpec {
  std::string name;
  Recipe recipe;
  Sweep sweep = Sweep::kQuick;  ///< The narrowest that has it.
  Twins twins = Twins::kAll;
  Twins quick_twins = Twins::kGeneric;
};

/// Small problems of every option and both tiles: tails, dense rows, empty selections, one block.
std::vector<CaseSpec> ragged_cases();

/// The layers of models, in full or cut to what the host runs in seconds.
std::vector<CaseSpec> served_cases(bool cut);

/// The shape over another KV layout: pages where the cache is linear, else a linear one.
SparseRowsShape in_another_layout(const SparseRowsShape& shape);

/// What a planted fault is tried on.
CaseSpec control_case(SparseTile tile, Values values);

}  // namespace broach::contract::sparse_rows
