#pragma once

#include <deque>
#include <string>
#include <vector>

#include "broach/options.hpp"
#include "specializer/forge.hpp"
#include "tools/contract/harness/toolchains.hpp"

namespace broach::tool {

/// Every hiprtc that a command is told of, each with its own compilers over one cache: the
/// system's, that of `BROACH_HIPRTC_PREFIX`, and one more prefix. Their binaries lie side by side
/// under keys of their own.
///
/// Owns:    the forges beside `own`, which outlives this.
class Toolchains {
 public:
  /// `own` was opened with `options`; `prefix` may be empty.
  Toolchains(const Options& options, const std::string& prefix, specializer::Forge& own);
  Toolchains(const Toolchains&) = delete;
  Toolchains& operator=(const Toolchains&) = delete;

  /// `own` first, by "system" or "prefix" as its hiprtc is.
  const std::vector<contract::Toolchain>& all() const noexcept { return all_; }

 private:
  void add(std::string name, const Options& options);

  std::deque<specializer::Forge> beside_;  // Forges keep their places.
  std::vector<contract::Toolchain> all_;
};

}  // namespace broach::tool
