#pragma once

#include <cstdint>
#include <memory>

#include "broach/window_rows.hpp"
#include "runtime/launch_stage.hpp"
#include "runtime/operator.hpp"

namespace broach::runtime {

/// Blocks of `block_rows` rows along the grid's x that cover any split of `rows` over `sequences`:
/// each sequence may end in a block of its own that is not full.
std::uint32_t prefill_row_blocks(std::int32_t rows, std::int32_t sequences,
                                 std::uint32_t block_rows) noexcept;

/// How a prefill plan's function is launched: a block a (rows of a sequence, as many as the
/// function works on; query head). No workspace is used.
///
/// Threads: any.
/// Owns:    nothing; the function is a loaded module's.
class PrefillLaunch final : public Launch {
 public:
  PrefillLaunch(const WindowRowsShape& shape, LaunchStage stage) noexcept
      : shape_(shape), stage_(stage) {}

  const WindowRowsShape& shape() const noexcept { return shape_; }

  /// Launches checked arguments of at least one row.
  Result<void> launch(const broach_window_rows_prefill_args& args, Stream stream) const;

 private:
  WindowRowsShape shape_;
  LaunchStage stage_;
};

/// Picks a loaded prefill plan's function out of its module.
///
/// Errors:  kInternal when the plan's entries are not what the launch knows.
Result<std::unique_ptr<const PrefillLaunch>> make_prefill_launch(const WindowRowsShape& shape,
                                                                 const specializer::Plan& plan,
                                                                 Module& module);

}  // namespace broach::runtime
