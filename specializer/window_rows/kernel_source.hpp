#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "broach/window_rows.hpp"
#include "specializer/family.hpp"

namespace broach::specializer::window_rows {

/// A rendered source: a kernel's `kConfig` (kernel_src/window_rows/config.h), member by member,
/// then the kernel's header.
class KernelSource {
 public:
  /// Begins with what every kernel is compiled with: the shape and the variant.
  ///
  /// A generic kernel reads window and layout from its parameters; its source is the same for all.
  /// `ratio` is what a generic kernel is compiled for. A control that the shape's kernel does not
  /// have renders the plain kernel, which plan() refuses to give out under that name.
  KernelSource(const WindowRowsShape& shape, int ratio, const Variant& variant);

  /// Sets one more member of Config, in its order.
  template <class Value>
  void set(std::string_view member, const Value& value) {
    text_ += fmt::format("    .{} = {},\n", member, value);
  }

  /// The whole source, which includes `header`.
  std::string finish(std::string_view header) &&;

 private:
  std::string text_;
};

}  // namespace broach::specializer::window_rows
