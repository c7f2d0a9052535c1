#pragma once

#include <span>
#include <string_view>

#include "tools/contract/harness/family.hpp"

namespace broach::contract {

/// Every family whose contract the command runs.
std::span<const ContractFamily* const> families();

/// Errors:  kNotFound naming the families there are.
Result<const ContractFamily*> find_family(std::string_view name);

}  // namespace broach::contract
