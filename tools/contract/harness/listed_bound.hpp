#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace broach::contract {

/// What a family's rounding points allow, for a reader of `--list`.
struct ListedBound {
  std::string_view name;
  std::vector<std::pair<std::string_view, double>> values;  ///< By arithmetic.
  std::string_view why;
};

}  // namespace broach::contract
