#include "specializer/sparse_rows/family.hpp"

#include "specializer/sparse_rows/render.hpp"
#include "specializer/sparse_rows/serve.hpp"
#include "specializer/sparse_rows/shape.hpp"

namespace broach::specializer::sparse_rows {
namespace {

class SparseRowsFamily final : public Family {
 public:
  std::string_view name() const noexcept override { return "sparse_rows"; }
  std::span<const Field> fields() const noexcept override { return kFields; }

  Result<void> check_ranges(const Shape& shape) const override {
    return sparse_rows::check_ranges(typed_of<SparseRowsShape>(shape));
  }

  Result<ServedShape> serve(const Shape& shape, const Target& target) const override {
    auto resolved = resolve(typed_of<SparseRowsShape>(shape), target);
    if (!resolved) return resolved.error();
    return served(shape_of(*resolved), target);
  }

  Result<Rendered> render(const ServedShape& served, const Variant& variant) const override {
    return sparse_rows::render(typed_of<SparseRowsShape>(served.shape()), served.target(), variant);
  }

  std::string_view control_needs(std::string_view control, const ServedShape& served,
                                 const Variant& /*variant*/) const override {
    const auto shape = typed_of<SparseRowsShape>(served.shape());
    const bool is_mma = shape.tile == SparseTile::kMma;
    if (control == "union_unmasked" && !is_mma) return "tile=mma";
    if (control == "part_dropped" && (!is_mma || shape.p_parts == 1)) {
      return "tile=mma and p_parts of 2 or more";
    }
    return {};
  }
};

}  // namespace

const Family& family() noexcept {
  static constinit const SparseRowsFamily kFamily;
  return kFamily;
}

}  // namespace broach::specializer::sparse_rows
