#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broach/result.hpp"
#include "cache/cache.hpp"
#include "specializer/compilers.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

/// A binary and how it was come by.
struct Artifact {
  std::shared_ptr<const cache::Object> object;
  cache::Layer layer;     ///< Who served it; the memory layer after a compile.
  bool compiled = false;  ///< This call ran a compiler.
};

enum class OnMiss : std::uint8_t {
  kCompile,
  kCompileAnew,  ///< Also what failed before and is remembered for it.
  kRefuse,
};

/// Looks a plan up, else compiles it, reads its limits and publishes it.
///
/// Threads: any.
class Forge {
 public:
  Forge(std::shared_ptr<cache::Cache> cache, std::shared_ptr<Compilers> compilers);

  /// Errors:  kNotWarmed under kRefuse, naming the shape and target; the compiler's errors;
  ///          under kCompile a failure remembered from the same limits until it expires, saying
  ///          so.
  Result<Artifact> obtain(const Plan& plan, OnMiss on_miss);

  /// The key a plan has with the compiler this machine would use.
  Result<cache::KeyRecord> key(const Plan& plan);

  /// A forge of other compilers over the same cache, as another version of one beside this one's.
  Forge with(std::shared_ptr<Compilers> compilers) const { return {cache_, std::move(compilers)}; }

  cache::Cache& cache() noexcept { return *cache_; }
  const std::shared_ptr<cache::Cache>& shared_cache() const noexcept { return cache_; }
  Compilers& compilers() noexcept { return *compilers_; }

 private:
  std::shared_ptr<cache::Cache> cache_;
  std::shared_ptr<Compilers> compilers_;
};

}  // namespace broach::specializer
