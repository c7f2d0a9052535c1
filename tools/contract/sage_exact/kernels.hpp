#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "broach/sage_exact.hpp"
#include "cache/key.hpp"
#include "runtime/device.hpp"
#include "runtime/sage_exact/launches.hpp"
#include "specializer/plan.hpp"
#include "tools/contract/harness/bench.hpp"

namespace broach::contract::sage_exact {

inline constexpr SageBoundary kBoundaries[] = {SageBoundary::kPrep, SageBoundary::kKMean,
                                               SageBoundary::kQkInt8, SageBoundary::kVFp8,
                                               SageBoundary::kAttention};

/// Every boundary's kernels on a bench.
///
/// Owns:    the modules; the bench's device outlives it.
class Kernels {
 public:
  /// Errors:  the specializer's, the forge's and the device's.
  static Result<Kernels> load(const Bench& bench, SageSchedule schedule);

  /// The same with a planted fault in the boundaries that have it; the others are `sound`'s, which
  /// outlives the result.
  static Result<Kernels> plant(const Kernels& sound, const Bench& bench, SageSchedule schedule,
                               std::string_view control);

  const runtime::sage_exact::Functions& functions() const noexcept { return functions_; }

  /// The key of attention's binary, or of the planted one's.
  const cache::Key& key() const noexcept { return key_; }

 private:
  Result<void> add(const Bench& bench, SageBoundary boundary, SageSchedule schedule,
                   std::string_view control);

  std::vector<std::unique_ptr<runtime::Module>> modules_;
  runtime::sage_exact::Functions functions_;
  cache::Key key_{};
};

}  // namespace broach::contract::sage_exact
