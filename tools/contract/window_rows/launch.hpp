#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "broach/result.hpp"
#include "broach/runtime.hpp"
#include "runtime/device.hpp"
#include "tools/contract/window_rows/problem.hpp"

namespace broach::contract {

/// Memory of a device, given back when it goes out of scope.
///
/// Owns:    the memory; the device outlives it.
class DeviceBytes {
 public:
  static Result<DeviceBytes> of_size(runtime::Device& device, std::size_t bytes);
  static Result<DeviceBytes> copy_of(runtime::Device& device, std::span<const std::byte> from);

  void* data() const noexcept { return memory_.get(); }
  std::size_t size() const noexcept { return size_; }

 private:
  struct Free {
    runtime::Device* device;
    void operator()(void* memory) const noexcept { device->free(memory); }
  };
  DeviceBytes(runtime::Device& device, void* memory, std::size_t bytes) noexcept
      : memory_(memory, Free{&device}), size_(bytes) {}

  std::unique_ptr<void, Free> memory_;
  std::size_t size_ = 0;
};

/// What can be launched: an operator of the public interface, or a variant behind it.
struct Decoder {
  std::function<std::size_t(std::int32_t rows, std::int32_t kv_heads, std::int32_t max_keys)>
      workspace_bytes;
  std::function<Result<void>(const DecodeArgs& args)> decode;
  std::function<Result<void>(const PrefillArgs& args)> prefill = {};  ///< Of form=prefill.
};

/// What outputs and workspace hold before a launch. Two runs with different poisons differ wherever
/// an output is not written or something unwritten is read.
enum class Poison : std::uint16_t {
  kNan = 0xffff,     ///< NaN in bf16, f16 and, twice over, fp32.
  kFinite = 0x5a5a,  ///< A large finite value in each of them.
};

/// A problem's inputs on a device, with outputs and workspace behind guards.
///
/// Owns:    every byte of it; the device outlives it.
class DeviceProblem {
 public:
  static Result<DeviceProblem> upload(runtime::Device& device, const DecodeProblem& problem);

  /// Launches once over poisoned outputs and workspace, waits, and brings the outputs back.
  ///
  /// Shapes:  as the problem's output strides lay them out.
  /// Errors:  the launch's; kInternal naming what was overwritten: the guard behind the outputs or
  ///          the workspace, or the padding between outputs.
  Result<std::vector<std::uint16_t>> run(const Decoder& decoder, Poison poison);

  /// The arguments of a launch, for timing; a prefill's have a decode's as `common`.
  ///
  /// Errors:  as `run`'s allocation of the workspace.
  Result<DecodeArgs> args(const Decoder& decoder);
  Result<PrefillArgs> prefill_args(const Decoder& decoder);

  /// Launches once, without waiting for the end.
  ///
  /// Errors:  the launch's.
  Result<void> launch(const Decoder& decoder, const PrefillArgs& args) const;

 private:
  explicit DeviceProblem(runtime::Device& device) noexcept : device_(&device) {}
  Result<void> check_padding(std::span<const std::uint16_t> out, Poison poison) const;

  runtime::Device* device_;
  DecodeProblem sizes_;  // Without q, k and v.
  std::vector<DeviceBytes> inputs_;
  std::vector<DeviceBytes> outputs_;  // The outputs, then the workspace.
  PrefillArgs args_;
};

}  // namespace broach::contract
