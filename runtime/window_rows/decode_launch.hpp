#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "broach/window_rows.hpp"
#include "runtime/device.hpp"
#include "runtime/operator.hpp"
#include "specializer/plan.hpp"

namespace broach::runtime {

/// How the functions of one arithmetic's decode plan are launched.
///
/// Threads: any.
/// Owns:    nothing; the functions are a loaded module's.
class DecodeLaunch : public Launch {
 public:
  const WindowRowsShape& shape() const noexcept { return shape_; }

  virtual std::size_t workspace_bytes(std::int32_t rows, std::int32_t kv_heads,
                                      std::int32_t max_keys) const noexcept = 0;

  /// Launches checked arguments of at least one row.
  virtual Result<void> launch(const broach_window_rows_decode_args& args, Stream stream) const = 0;

 protected:
  explicit DecodeLaunch(const WindowRowsShape& shape) noexcept : shape_(shape) {}

 private:
  WindowRowsShape shape_;
};

/// Picks a loaded decode plan's functions out of its module.
///
/// Shapes:  `shape` is as it is served: its arithmetic says which plan it is. `multiprocessors` is
///          the device's, by which a launch may spread its work.
/// Errors:  kInternal when the plan's entries are not what the launch knows.
Result<std::unique_ptr<const DecodeLaunch>> make_decode_launch(const WindowRowsShape& shape,
                                                               const specializer::Plan& plan,
                                                               Module& module,
                                                               std::uint32_t multiprocessors);

}  // namespace broach::runtime
