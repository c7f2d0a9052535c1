#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "broach/result.hpp"
#include "runtime/window_rows/decode_launch.hpp"
#include "runtime/window_rows/prefill_launch.hpp"
#include "runtime/window_rows/tile64_launch.hpp"
#include "specializer/plan.hpp"
#include "tools/contract/harness/bench.hpp"
#include "tools/contract/window_rows/launch.hpp"

namespace broach::contract::window_rows {

/// A kernel of a shape on a bench: the one the public interface serves, or a variant behind it.
///
/// Owns:    its module; the bench outlives it.
class Kernel {
 public:
  /// `spread_over` makes a launch spread its work as over a chip of so many multiprocessors (0: the
  /// device's own), which changes no bit of a sound kernel.
  ///
  /// Errors:  the plan's, the forge's and the device's.
  static Result<Kernel> load(const Bench& bench, const WindowRowsShape& shape,
                             const specializer::Variant& variant = {},
                             std::uint32_t spread_over = 0);

  /// Uploads a problem, launches it once, brings the outputs back.
  ///
  /// The problem's window and layout may differ from the shape's where the variant is generic.
  /// Errors:  DeviceProblem::run's.
  Result<std::vector<std::uint16_t>> run(const Problem& problem,
                                         Poison poison = Poison::kNan) const;

  /// A launch of it, for DeviceProblem::run. Lives no longer than the kernel.
  Decoder decoder() const;

  /// The same for a tile64 decode whose tiles are spread over blocks as `schedule` says.
  ///
  /// Errors:  kInternal when the kernel is no tile64 decode.
  Result<Decoder> decoder(const runtime::Tile64Schedule& schedule) const;

  const WindowRowsShape& shape() const noexcept { return shape_; }  ///< Resolved.
  const Bench& bench() const noexcept { return bench_; }
  const specializer::Plan& plan() const noexcept { return plan_; }
  const runtime::LoadedPlan& loaded() const noexcept { return loaded_; }
  const cache::Key& key() const noexcept { return loaded_.artifact.object->key.key; }

 private:
  Decoder decoder(std::shared_ptr<const runtime::DecodeLaunch> launch) const;

  Bench bench_;
  WindowRowsShape shape_;
  specializer::Plan plan_;
  runtime::LoadedPlan loaded_;
  std::shared_ptr<const runtime::DecodeLaunch> decode_;    // Of a decode,
  std::shared_ptr<const runtime::PrefillLaunch> prefill_;  // or of a prefill.
};

}  // namespace broach::contract::window_rows
