#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "broach/result.hpp"
#include "runtime/device.hpp"

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
  runtime::Device& device() const noexcept { return *memory_.get_deleter().device; }

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

/// What outputs and workspace hold before a launch. Two runs with different poisons differ wherever
/// an output is not written or something unwritten is read.
enum class Poison : std::uint16_t {
  kNan = 0xffff,     ///< NaN in bf16, f16 and, twice over, fp32.
  kFinite = 0x5a5a,  ///< A large finite value in each of them.
};

/// Memory that a kernel writes, with a guard behind it.
///
/// Owns:    the memory; the device outlives it.
class GuardedBytes {
 public:
  /// Errors:  the device's.
  static Result<GuardedBytes> of_size(runtime::Device& device, std::size_t bytes);

  void* data() const noexcept { return memory_.data(); }
  std::size_t size() const noexcept { return size_; }  ///< Without the guard.

  /// Fills it with the poison's pattern, and the guard with its own.
  Result<void> poison(Poison poison);

  /// Errors:  kInternal when the guard was overwritten; `name` is what it stands behind.
  Result<void> check_guard(std::string_view name) const;

  /// Brings its first `to.size()` bytes to the host.
  Result<void> read(std::span<std::byte> to) const;

 private:
  GuardedBytes(DeviceBytes memory, std::size_t bytes) noexcept
      : memory_(std::move(memory)), size_(bytes) {}

  DeviceBytes memory_;
  std::size_t size_ = 0;
};

}  // namespace broach::contract
