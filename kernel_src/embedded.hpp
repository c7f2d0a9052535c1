#pragma once

#include <span>
#include <string_view>

namespace broach {

/// A file whose bytes were compiled into the library.
struct EmbeddedFile {
  std::string_view name;  ///< Relative to its root: "common/exp.cuh".
  std::string_view bytes;
};

/// Every device source, by virtual name.
extern const std::span<const EmbeddedFile> kKernelSources;

}  // namespace broach
