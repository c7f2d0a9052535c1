#pragma once

#include <string>
#include <string_view>

namespace broach::tool {

/// The files that `broach family new` writes: a kernel that works, to be changed.
struct FamilySkeleton {
  std::string family_file;  ///< "scale.family.json"
  std::string family_text;
  std::string source_file;
  std::string source_text;
  std::string shape;  ///< One that it serves: "acme.scale dtype=f32 vector=4"
};

/// `name` is vendor.family.
FamilySkeleton skeleton_of(std::string_view name);

}  // namespace broach::tool
