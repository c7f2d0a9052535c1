#include "tools/contract/families.hpp"

#include <string>

#include "tools/contract/qk_rows/family.hpp"
#include "tools/contract/sage_exact/family.hpp"
#include "tools/contract/sparse_rows/family.hpp"
#include "tools/contract/window_rows/family.hpp"

namespace broach::contract {

std::span<const ContractFamily* const> families() {
  // One line a family.
  static const ContractFamily* const kFamilies[] = {
      &window_rows::family(),
      &qk_rows::family(),
      &sparse_rows::family(),
      &sage_exact::family(),
  };
  return kFamilies;
}

Result<const ContractFamily*> find_family(std::string_view name) {
  std::string known;
  for (const ContractFamily* const family : families()) {
    if (family->name() == name) return family;
    known += (known.empty() ? "" : ", ") + std::string(family->name());
  }
  return Error{ErrorCode::kNotFound,
               "no contract of family \"" + std::string(name) + "\"; there are " + known, ""};
}

}  // namespace broach::contract
