#include "specializer/family.hpp"
#include "specializer/window_rows/family.hpp"

namespace broach::specializer {

// One line a family. The first is the one of a manifest's entry that names none.
std::span<const Family* const> families() noexcept {
  static const Family* const kFamilies[] = {
      &window_rows::family(),
  };
  return kFamilies;
}

}  // namespace broach::specializer
