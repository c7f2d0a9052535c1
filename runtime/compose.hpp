#pragma once

#include <functional>
#include <string_view>

#include "broach/options.hpp"
#include "cache/cache.hpp"
#include "specializer/compilers.hpp"
#include "specializer/forge.hpp"

namespace broach::runtime {

/// Where lines for people go: the options' own, else standard error, each line once a process.
std::function<void(std::string_view)> notice_of(const Options& options);

/// The parts of Options that each room below is opened with.
cache::CacheOptions cache_options(const Options& options);
specializer::CompilersOptions compilers_options(const Options& options);

/// A cache, the compilers that remember their identities in it, and the forge over both. Opens no
/// device and no compiler. `readers` may read what the writable directory gets.
specializer::Forge open_forge(const Options& options,
                              cache::Readers readers = cache::Readers::kOwner);

/// A forge over the cache of another one, with the compilers that these options name.
specializer::Forge forge_beside(const specializer::Forge& forge, const Options& options);

}  // namespace broach::runtime
