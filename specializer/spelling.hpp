#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace broach::specializer {

/// How many letters have to be put in, left out, replaced or swapped with their neighbour to make
/// one word of another; case does not count.
std::size_t spelling_distance(std::string_view one, std::string_view other);

/// The names that a misspelt word is likely to stand for, nearest first: at most three, none that
/// shares too little with it.
std::vector<std::string_view> likely_names(std::string_view word,
                                           std::span<const std::string_view> names);

/// "; did you mean sm_90a or sm_80?", or "" where nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace broach::specializer
