#pragma once

#include "tools/contract/harness/family.hpp"

namespace broach::contract::sage_exact {

/// Attention with int8 q and k and E4M3 p and v, held against golden bytes.
const ContractFamily& family();

}  // namespace broach::contract::sage_exact
