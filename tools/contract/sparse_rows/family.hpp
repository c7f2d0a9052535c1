#pragma once

#include "tools/contract/harness/family.hpp"

namespace broach::contract::sparse_rows {

const ContractFamily& family();

}  // namespace broach::contract::sparse_rows
