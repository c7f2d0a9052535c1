#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "specializer/compile/identity.hpp"
#include "specializer/compile/worker_pool.hpp"
#include "specializer/compile/worker_registry.hpp"
#include "specializer/compilers.hpp"

namespace broach::specializer {

/// One kind of compiler: where it is, who it is, and its workers.
///
/// Threads: any.
class Toolchain {
 public:
  /// The references outlive the toolchain; no option is left at its default but `jobs`.
  Toolchain(CompilerKind kind, const CompilersOptions& options, const IdentityMemo& memo,
            WorkerRegistry& registry);

  /// Errors (all three): as Compilers states them.
  Result<CompilerIdentity> identity();
  Result<CompileOutput> compile(const Plan& plan);
  CompilerStatus status();

 private:
  Result<Worker> start();
  Result<Worker> open(const std::filesystem::path& program,
                      const std::filesystem::path& file) const;

  /// Takes an identity unless there is one; returns the one that holds.
  CompilerIdentity settle(CompilerIdentity identity);

  /// Makes a loaded compiler's identity the one that holds; returns whether another one did.
  bool adopt(const CompilerIdentity& loaded);

  const CompilerKind kind_;
  const CompilersOptions& options_;
  const IdentityMemo& memo_;
  WorkerRegistry& registry_;
  std::mutex mutex_;
  std::optional<CompilerIdentity> identity_;
  WorkerPool pool_;
};

}  // namespace broach::specializer
