#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace broach::cache {

/// A memo as its file holds it: name, value, and the digest of both.
///
/// Source:  docs/cache_format.md.
std::string memo_record(std::string_view name, std::string_view value);

/// The value of a memo's file; absent when it is damaged, or a memo of another name.
std::optional<std::string> value_of_memo(std::string_view record, std::string_view name);

}  // namespace broach::cache
