#include "specializer/family.hpp"
#include "specializer/qk_rows/family.hpp"
#include "specializer/sage_exact/family.hpp"
#include "specializer/sparse_rows/family.hpp"
#include "specializer/window_rows/family.hpp"

namespace broach::specializer {

// One line a family. The first is the one of a manifest's entry that names none.
std::span<const Family* const> families() noexcept {
  static const Family* const kFamilies[] = {
      &window_rows::family(),
      &qk_rows::family(),
      &sparse_rows::family(),
      &sage_exact::family(),
  };
  return kFamilies;
}

}  // namespace broach::specializer
