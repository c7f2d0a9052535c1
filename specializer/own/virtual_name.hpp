#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace broach::specializer::own {

/// The bytes and parts that a virtual name may have.
inline constexpr std::size_t kMaxVirtualNameBytes = 512;
inline constexpr std::size_t kMaxVirtualNameParts = 32;

/// The name that an include has in a tree: `name` beside `from` ("a/b.h"), or at the tree's top
/// where `from` is empty; "." and ".." are worked out.
///
/// Nothing where it is absolute, leaves the tree, is over the bounds, or has bytes that no include
/// can spell on every compiler.
std::optional<std::string> virtual_name(std::string_view from, std::string_view name);

}  // namespace broach::specializer::own
