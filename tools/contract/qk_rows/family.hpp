#pragma once

#include "tools/contract/harness/family.hpp"

namespace broach::contract::qk_rows {

const ContractFamily& family();

}  // namespace broach::contract::qk_rows
