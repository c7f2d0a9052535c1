#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "broach/runtime.hpp"
#include "runtime/device.hpp"
#include "specializer/plan.hpp"

namespace broach::runtime {

/// How the functions of one arithmetic's plan are launched: decode, or prefill where it overrides
/// `launch_prefill`.
///
/// Threads: any.
/// Owns:    nothing; the functions are a loaded module's.
class DecodeLaunch {
 public:
  virtual ~DecodeLaunch() = default;
  virtual std::size_t workspace_bytes(std::int32_t rows, std::int32_t kv_heads,
                                      std::int32_t max_keys) const noexcept = 0;

  /// Launches checked arguments of at least one row.
  virtual Result<void> launch(const DecodeArgs& args, Stream stream) const = 0;

  /// Launches a prefill's checked arguments of at least one row.
  ///
  /// Errors:  kInvalidArgument when the plan is a decode's.
  virtual Result<void> launch_prefill(const PrefillArgs& args, Stream stream) const;
};

/// Picks a loaded plan's functions out of its module.
///
/// Shapes:  `shape` is resolved: its arithmetic says which plan it is. `multiprocessors` is the
///          device's, by which a launch may spread its work.
/// Errors:  kUnsupported for an arithmetic without a decode launch; kInternal when the plan's
///          entries are not what the launch knows.
Result<std::unique_ptr<const DecodeLaunch>> make_decode_launch(const WindowRowsShape& shape,
                                                               const specializer::Plan& plan,
                                                               Module& module,
                                                               std::uint32_t multiprocessors);

}  // namespace broach::runtime
