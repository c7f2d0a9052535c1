#pragma once

#include <memory>
#include <string>

#include "broach/options.hpp"
#include "broach/result.hpp"
#include "cache/cache.hpp"
#include "specializer/compilers.hpp"
#include "specializer/forge.hpp"
#include "tools/broach/output.hpp"

namespace broach::tool {

/// What a subcommand works with: the options, the output, and the cache and compilers behind them,
/// each opened when it is first asked for.
///
/// Threads: one, but for what `cache`, `compilers` and `forge` themselves allow.
class Session {
 public:
  Session(Options options, std::string terminal_name, Output& output);

  Output& output() noexcept { return output_; }
  const Options& options() const noexcept { return options_; }
  /// TERM as the program's main read it.
  const std::string& terminal_name() const noexcept { return terminal_name_; }

  /// Makes `directory` the only candidate for the writable layer.
  void use_cache_directory(std::string directory);
  /// Sends the cache's and the runtime's one-line notices elsewhere than standard error.
  void use_notice(cache::Notice notice) { notice_ = std::move(notice); }

  std::shared_ptr<cache::Cache> cache();
  std::shared_ptr<specializer::Compilers> compilers();
  specializer::Forge& forge();

  /// The cache for a command that is about its directory.
  ///
  /// Errors:  kDenied or kIo with the directory and the reason when it cannot be used.
  Result<std::shared_ptr<cache::Cache>> stored_cache();

  /// A second look at the same directories, without what this process holds in memory.
  std::unique_ptr<cache::Cache> fresh_cache() const;

 private:
  cache::CacheOptions cache_options() const;

  Options options_;
  std::string terminal_name_;
  Output& output_;
  cache::Notice notice_;
  std::shared_ptr<cache::Cache> cache_;
  std::shared_ptr<specializer::Compilers> compilers_;
  std::unique_ptr<specializer::Forge> forge_;
};

}  // namespace broach::tool
