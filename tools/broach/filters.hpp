#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "cache/cache.hpp"
#include "specializer/family_set.hpp"
#include "tools/broach/session.hpp"

namespace broach::tool {

/// The target that a word names, as entries have it: `host` is this machine's.
///
/// Errors:  kInvalidArgument for a word that is no target and that no entry has, with the nearest.
Result<std::string> target_named(const std::string& word, std::span<const cache::Entry> entries);

/// Whether a word is a family's name.
///
/// Errors:  kInvalidArgument for one that no entry and no version knows, with the nearest.
Result<void> check_family(const std::string& word, std::span<const cache::Entry> entries,
                          const specializer::FamilySet& families);

/// The families that --family names, as names: those of entries, and of family files.
///
/// Errors:  check_family's; a family file's.
Result<std::vector<std::string>> families_chosen(Session& session,
                                                 std::span<const cache::Entry> entries);

/// Orders texts as people read them: numbers in them by their value ("sm_90a" before "sm_120a").
bool reads_before(std::string_view a, std::string_view b) noexcept;

}  // namespace broach::tool
