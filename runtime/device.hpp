#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/target.hpp"
#include "specializer/version.hpp"

namespace broach::runtime {

/// A stream as the driver knows it (CUstream, hipStream_t); null is the device's default.
using Stream = void*;

/// Whether the blocks of a grid run all at once, so that they may wait for each other.
enum class GridSync : std::uint8_t { kNone, kCooperative };

/// Whether a launch may start before the one in front of it in the stream has ended: programmatic
/// dependent launch. The kernel itself then waits for what it reads.
enum class Overlap : std::uint8_t { kNone, kProgrammatic };

/// One launch of a function.
///
/// A function whose only parameter is a struct passed by value takes it as `params`. Any other
/// takes `arguments`: a pointer for each parameter, in order, to a value of the parameter's type.
///
/// Shapes:  `grid` in blocks, `block` in threads, `cluster` in blocks; a cluster of 0 blocks is
///          none. `arguments` count only where `params` is null.
struct LaunchConfig {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {0, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  const void* params = nullptr;
  std::size_t params_bytes = 0;
  Stream stream = nullptr;
  std::span<const void* const> arguments{};
  std::uint32_t cluster[3] = {0, 0, 0};
  GridSync grid_sync = GridSync::kNone;
  Overlap overlap = Overlap::kNone;
};

/// A variable of a loaded binary: a __constant__ or a __device__ one at global scope.
struct Symbol {
  void* address = nullptr;  ///< On the device.
  std::size_t bytes = 0;
};

/// A tensor of 16-bit elements for the tensor copy engine, the fastest dim first.
///
/// Units:   `strides` in bytes, of dims 1 to 4; a copy moves a box of `box` elements, whose rows of
///          128 bytes are swizzled.
struct TensorLayout {
  const void* data = nullptr;
  std::array<std::uint64_t, 5> dims{};
  std::array<std::uint64_t, 4> strides{};
  std::array<std::uint32_t, 5> box{};
};

/// A driver's description of such a tensor, which a kernel takes by value.
struct TensorMap {
  std::array<std::uint64_t, 16> words{};
};

/// A function of a loaded module.
///
/// Threads: any.
class Function {
 public:
  virtual ~Function() = default;
  /// Errors:  kUnsupported naming what the device lacks (clusters, overlap, grid-wide waits);
  ///          kDriver with the whole launch in words.
  virtual Result<void> launch(const LaunchConfig& config) const = 0;
  /// What the live device says of it.
  virtual Result<LaunchLimits> live_limits() const = 0;
  /// Describes a tensor for a launch of it.
  ///
  /// Errors:  kUnsupported where there is no tensor copy engine; kDriver.
  virtual Result<TensorMap> tensor_map(const TensorLayout& layout) const;
};

/// A loaded binary. Functions live as long as it does.
class Module {
 public:
  virtual ~Module() = default;
  /// Errors:  kNotFound naming the function.
  virtual Result<const Function*> function(std::string_view name) = 0;

  /// Where a variable lies, by its name in the binary: as written, at global scope.
  ///
  /// Errors:  kNotFound naming the variable; a compiler leaves out one that nothing uses.
  virtual Result<Symbol> symbol(std::string_view name);

  /// Writes bytes to the start of a variable, in the stream's order. The bytes may go once this
  /// returns, but for a stream that captures: its graph reads them at each launch.
  ///
  /// Errors:  symbol's; kInvalidArgument when the variable is smaller.
  virtual Result<void> set_symbol(std::string_view name, std::span<const std::byte> bytes,
                                  Stream stream);
};

/// A chip that launches kernels, or the host standing in for one.
///
/// Threads: any.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;    ///< "NVIDIA H200", "host"
  virtual std::string_view driver() const = 0;  ///< "580.159.04 (CUDA 13.0)"
  /// The CUDA version that the driver serves, where it is a CUDA driver.
  virtual specializer::Version driver_version() const { return {}; }
  virtual const specializer::Target& target() const = 0;

  /// Blocks that make progress at the same time, at least: multiprocessors on a GPU. Launches
  /// spread their work by it; no result depends on it.
  virtual std::uint32_t multiprocessors() const { return 1; }

  /// Errors:  kDriver when the driver refuses the binary, with the driver's and toolkit's words.
  virtual Result<std::unique_ptr<Module>> load(std::span<const std::byte> binary,
                                               std::span<const std::string> functions) = 0;
  virtual Result<bool> capturing(Stream stream) = 0;

  virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) noexcept = 0;
  virtual Result<void> copy_to_device(void* to, const void* from, std::size_t bytes) = 0;
  virtual Result<void> copy_to_host(void* to, const void* from, std::size_t bytes) = 0;
  virtual Result<void> synchronize(Stream stream) = 0;
};

/// Opens a device by name: "host", "cuda", "cuda:1".
///
/// Errors:  kNotFound with what was tried when there is no driver or no such device.
Result<std::shared_ptr<Device>> open_device(std::string_view name);

}  // namespace broach::runtime
