#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "specializer/family.hpp"
#include "specializer/family_set.hpp"
#include "specializer/shape.hpp"

namespace broach::specializer {

/// One kind of layer of a model, and the shapes that serve it: of one family, as that expands an
/// entry.
struct ManifestEntry {
  std::string model;   ///< "Gemma 4 12B"
  std::string layers;  ///< "sliding (5 of 6)"
  std::string source;  ///< Where the figures come from.
  const Family* family = nullptr;
  std::vector<Shape> shapes;
};

/// A layer that no family can serve, and why.
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

/// Reads a manifest, whose entries are of these families; `file` is what error messages call it.
///
/// Errors:  kInvalidArgument naming the file, the line where it stops being JSON, or the entry, its
///          model, the field, its value and what would work.
/// Source:  docs/manifests.md.
Result<Manifest> read_manifest(std::string_view file, std::string_view text,
                               const FamilySet& families = {});

/// Every distinct shape, in the order the entries first name it.
std::vector<Shape> distinct_shapes(const Manifest& manifest);

}  // namespace broach::specializer
