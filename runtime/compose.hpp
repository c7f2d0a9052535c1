#pragma once

#include <memory>

#include "broach/options.hpp"
#include "cache/cache.hpp"
#include "specializer/compilers.hpp"
#include "specializer/forge.hpp"

namespace broach::runtime {

/// The parts of Options that each room below is opened with.
///
/// `notice` falls back to one line on standard error, each line once a process.
cache::CacheOptions cache_options(const Options& options);
specializer::CompilersOptions compilers_options(const Options& options);

/// A cache, the compilers that remember their identities in it, and the forge over both. Opens no
/// device and no compiler.
specializer::Forge open_forge(const Options& options);

}  // namespace broach::runtime
