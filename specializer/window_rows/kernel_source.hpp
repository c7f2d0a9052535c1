#pragma once

#include <fmt/core.h>

#include <span>
#include <string>
#include <string_view>

#include "broach/types.hpp"
#include "specializer/family.hpp"

namespace broach::specializer::window_rows {

/// A layout as the kernels' enumerator of it, "kRing".
std::string_view layout_enumerator(KvLayoutKind kind);

/// A rendered source: the constants of a shape by name, then the header of a kernel family that
/// takes them.
class KernelSource {
 public:
  /// Begins with what every family is compiled with: the shape and the variant.
  ///
  /// A generic kernel reads window and layout from its parameters; its source is the same for all.
  /// `ratio` is what a generic kernel is compiled for. A control that is not among `controls`
  /// renders the plain kernel, which plan() refuses to give out under that name.
  KernelSource(const WindowRowsShape& shape, int ratio, const Variant& variant,
               std::span<const std::string_view> controls);

  /// Adds one constant of the family's own.
  template <class Value>
  void constant(std::string_view type, std::string_view name, const Value& value) {
    text_ += fmt::format("constexpr {} {} = {};\n", type, name, value);
  }

  /// The whole source, which includes `header`.
  std::string finish(std::string_view header) &&;

 private:
  std::string text_;
};

}  // namespace broach::specializer::window_rows
