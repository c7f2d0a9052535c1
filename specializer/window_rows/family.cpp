#include "specializer/window_rows/family.hpp"

#include <fmt/core.h>

#include "specializer/window_rows/controls.hpp"
#include "specializer/window_rows/manifest.hpp"
#include "specializer/window_rows/render.hpp"
#include "specializer/window_rows/serve.hpp"
#include "specializer/window_rows/shape.hpp"

namespace broach::specializer::window_rows {
namespace {

class WindowRowsFamily final : public Family {
 public:
  std::string_view name() const noexcept override { return "window_rows"; }
  std::span<const Field> fields() const noexcept override { return kFields; }

  Result<void> check_ranges(const Shape& shape) const override {
    return window_rows::check_ranges(typed_of<WindowRowsShape>(shape));
  }

  Result<ServedShape> serve(const Shape& shape, const Target& target) const override {
    auto resolved = resolve(typed_of<WindowRowsShape>(shape), target);
    if (!resolved) return resolved.error();
    return served(shape_of(*resolved), target);
  }

  Result<Rendered> render(const ServedShape& served, const Variant& variant) const override {
    const auto shape = typed_of<WindowRowsShape>(served.shape());
    switch (shape.arith) {
      case Arith::kChunk256:
        return render_window_rows_chunk256(shape, served.target(), variant);
      case Arith::kTile64:
      case Arith::kTile64Ex2:
        return render_window_rows_tile64(shape, served.target(), variant);
      case Arith::kMma32:
        return render_window_rows_mma32(shape, served.target(), variant);
      case Arith::kDefault:
        break;
    }
    return Error{ErrorCode::kInternal,
                 fmt::format("window_rows arith={} has no source to render", name_of(shape.arith)),
                 ""};
  }

  std::string_view control_needs(std::string_view control, const ServedShape& served,
                                 const Variant& variant) const override {
    return missing_for(control, typed_of<WindowRowsShape>(served.shape()), variant.generic);
  }

  std::span<const std::string_view> manifest_members() const noexcept override {
    return kManifestMembers;
  }

  Result<std::vector<Shape>> manifest_shapes(const nlohmann::json& entry) const override {
    return shapes_of_entry(entry);
  }
};

}  // namespace

const Family& family() noexcept {
  static constinit const WindowRowsFamily kFamily;
  return kFamily;
}

}  // namespace broach::specializer::window_rows
