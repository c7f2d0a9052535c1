#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cache/cache.hpp"

namespace broach::cache {

/// A failure as the text of a memo, its log cut where it is very long.
std::string to_text(const Failure& failure);

/// Absent when the text is not such a memo's.
std::optional<Failure> failure_from(const Key& key, std::string_view text);

}  // namespace broach::cache
