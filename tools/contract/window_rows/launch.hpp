#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "broach/result.hpp"
#include "broach/window_rows.hpp"
#include "runtime/device.hpp"
#include "runtime/window_rows/decode_launch.hpp"
#include "runtime/window_rows/prefill_launch.hpp"
#include "tools/contract/harness/device_memory.hpp"
#include "tools/contract/window_rows/problem.hpp"

namespace broach::contract::window_rows {

/// What can be launched: an operator of the public interface, or a variant behind it.
struct Decoder {
  std::function<std::size_t(std::int32_t rows, std::int32_t kv_heads, std::int32_t max_keys)>
      workspace_bytes;
  std::function<Result<void>(const broach_window_rows_decode_args& args)> decode;
  std::function<Result<void>(const broach_window_rows_prefill_args& args)> prefill = {};
};

/// An operator's launches on a stream.
Decoder decoder_of(WindowRowsDecode op, void* stream = nullptr);
Decoder decoder_of(WindowRowsPrefill op, void* stream = nullptr);

/// A loaded plan's launches, without the checks of the public interface.
Decoder decoder_of(std::shared_ptr<const runtime::DecodeLaunch> launch);
Decoder decoder_of(std::shared_ptr<const runtime::PrefillLaunch> launch);

/// A problem's inputs on a device, with outputs and workspace behind guards.
///
/// Owns:    every byte of it; the device outlives it.
class DeviceProblem {
 public:
  static Result<DeviceProblem> upload(runtime::Device& device, const Problem& problem);

  /// Launches once over poisoned outputs and workspace, waits, and brings the outputs back.
  ///
  /// Shapes:  as the problem's output strides lay them out.
  /// Errors:  the launch's; kInternal naming what was overwritten: the guard behind the outputs or
  ///          the workspace, or the padding between outputs.
  Result<std::vector<std::uint16_t>> run(const Decoder& decoder, Poison poison);

  /// The arguments of a launch, for timing.
  ///
  /// Errors:  as `run`'s allocation of the workspace.
  Result<ProblemArgs> args(const Decoder& decoder);

  /// Launches once, without waiting for the end.
  ///
  /// Errors:  the launch's.
  Result<void> launch(const Decoder& decoder, const ProblemArgs& args) const;

 private:
  explicit DeviceProblem(runtime::Device& device) noexcept : device_(&device) {}
  Result<void> check_padding(std::span<const std::uint16_t> out, Poison poison) const;

  runtime::Device* device_;
  Problem sizes_;  // Without q, k and v.
  std::vector<DeviceBytes> inputs_;
  std::optional<GuardedBytes> out_, workspace_;
  ProblemArgs args_;
};

}  // namespace broach::contract::window_rows
