#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"

namespace broach::specializer {

/// One kind of attention layer of a model, and the shapes that serve it.
struct ManifestEntry {
  std::string model;   ///< "Gemma 4 12B"
  std::string layers;  ///< "sliding (5 of 6)"
  std::string source;  ///< Where the figures come from.
  std::optional<std::uint32_t> q_heads, kv_heads;
  WindowRowsShape decode;
  WindowRowsShape prefill;

  const WindowRowsShape& shape(Form form) const noexcept {
    return form == Form::kDecode ? decode : prefill;
  }
};

/// A layer that window_rows cannot serve, and why.
struct NotServed {
  std::string model;
  std::string layers;
  std::string source;
  std::string reason;
};

/// What a family of models needs compiled.
struct Manifest {
  std::string name;
  std::vector<ManifestEntry> entries;
  std::vector<NotServed> not_served;
};

/// Reads a manifest; `file` is what error messages call it.
///
/// Errors:  kInvalidArgument naming the file, the line where it stops being JSON, or the entry, its
///          model, the field, its value and what would work.
/// Source:  docs/manifests.md.
Result<Manifest> read_manifest(std::string_view file, std::string_view text);

/// Every distinct shape of a form, in the order the entries first name it.
std::vector<WindowRowsShape> distinct_shapes(const Manifest& manifest, Form form);

}  // namespace broach::specializer
