#pragma once

#include <span>
#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "cache/cache.hpp"

namespace broach::tool {

/// The target that a word names, as entries have it: `host` is this machine's.
///
/// Errors:  kInvalidArgument for a word that is no target and that no entry has, with the nearest.
Result<std::string> target_named(const std::string& word, std::span<const cache::Entry> entries);

/// Whether a word is a family's name.
///
/// Errors:  kInvalidArgument for one that no entry and no version knows, with the nearest.
Result<void> check_family(const std::string& word, std::span<const cache::Entry> entries);

/// Orders texts as people read them: numbers in them by their value ("sm_90a" before "sm_120a").
bool reads_before(std::string_view a, std::string_view b) noexcept;

}  // namespace broach::tool
