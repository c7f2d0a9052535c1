#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broach/options.hpp"
#include "broach/result.hpp"
#include "cache/cache.hpp"
#include "specializer/compilers.hpp"
#include "specializer/family_set.hpp"
#include "specializer/forge.hpp"
#include "tools/broach/output.hpp"

namespace broach::tool {

/// What a subcommand works with: the options, the output, and the cache and compilers behind them,
/// opened when they are first asked for.
///
/// Threads: one, but for what the cache, the compilers and the forge themselves allow.
class Session {
 public:
  enum class Need : std::uint8_t { kRead, kWrite };

  Session(Options options, std::string terminal_name, Output& output);

  Output& output() noexcept { return output_; }
  const Options& options() const noexcept { return options_; }
  /// TERM as the program's main read it.
  const std::string& terminal_name() const noexcept { return terminal_name_; }

  /// Makes `directory` the only candidate for the writable layer. A relative one begins at the
  /// working directory.
  void use_cache_directory(std::string directory);

  /// Before the cache is opened: what goes into a directory that the command line names can be read
  /// by everyone, as an image's layer must be.
  void fill_for_everyone();

  /// Why other users cannot read the directory that the command line names, though they were meant
  /// to; empty when they can, or none is named.
  std::string why_unreadable() const;

  /// Words of --family: family files, and names.
  void name_families(std::vector<std::string> words) { family_words_ = std::move(words); }

  /// Every family: this version's own, those of BROACH_FAMILY_PATH, and those that the command line
  /// names a file of.
  ///
  /// Errors:  a family file's.
  /// Owns:    nothing; the session does.
  Result<const specializer::FamilySet*> families();

  /// The families that the command line names, by name. After families().
  const std::vector<std::string>& family_names() const noexcept { return family_names_; }

  /// Opens the cache; what it has to say about its directories is one line on standard error.
  specializer::Forge& forge();
  cache::Cache& cache() { return forge().cache(); }
  specializer::Compilers& compilers() { return forge().compilers(); }

  /// The device for a command that brings its own inputs: the one that the options name, else a
  /// GPU, else, with a line that says so, the host.
  std::string own_device() const;

  /// The cache for a command that is about what directories hold.
  ///
  /// Errors:  kDenied or kIo with the directory and the reason when there is none to read, or none
  ///          to write under kWrite.
  /// Owns:    nothing; the session does.
  Result<cache::Cache*> stored_cache(Need need);

  /// A second look at the same directories, without what this process holds in memory.
  std::unique_ptr<cache::Cache> fresh_cache() const;

 private:
  Options options_;
  std::string terminal_name_;
  Output& output_;
  std::unique_ptr<specializer::Forge> forge_;
  bool directory_named_ = false;
  cache::Readers readers_ = cache::Readers::kOwner;
  std::vector<std::string> opening_notices_;
  bool opening_ = false;
  std::vector<std::string> family_words_;
  std::vector<std::string> family_names_;
  std::unique_ptr<specializer::FamilySet> families_;

  specializer::Forge& open_forge();
};

}  // namespace broach::tool
