#pragma once

#include <string>
#include <vector>

#include "tools/contract/harness/sweep.hpp"
#include "tools/contract/sparse_rows/problem.hpp"

namespace broach::contract::sparse_rows {

struct CaseSpec {
  std::string name;
  Recipe recipe;
  Sweep sweep = Sweep::kQuick;  ///< The narrowest that has it.
};

/// Small problems of every option and both tiles: tails, dense rows, empty selections, one block.
std::vector<CaseSpec> ragged_cases();

/// The layers of models, in full or cut to what the host runs in seconds.
std::vector<CaseSpec> served_cases(bool cut);

/// What a planted fault is tried on.
CaseSpec control_case(SparseTile tile, Values values);

}  // namespace broach::contract::sparse_rows
