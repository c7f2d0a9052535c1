#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "broach/export.hpp"
#include "broach/kernel_info.hpp"
#include "broach/options.hpp"
#include "broach/result.hpp"
#include "broach/types.hpp"

namespace broach {

class Runtime;
namespace runtime {
struct Operator;
struct KernelShapeState;
}  // namespace runtime
namespace specializer::own {
class OwnFamily;
}

/// A source of a family, by the name that its family file lists and others include.
struct KernelSource {
  std::string name;
  std::string bytes;
};

class KernelShape;

/// A family of an engine's own kernels: sources, parameters, functions, targets.
///
/// Threads: any; it does not change. Copies share it.
/// Source:  docs/own_families.md.
class BROACH_API KernelFamily {
 public:
  /// Reads a family file and the sources beside it. The options say where toolkits' headers lie.
  ///
  /// Errors:  kNotFound; kDenied where others could have written a part; kInvalidArgument with
  ///          file, line, member, value and what would work.
  static Result<KernelFamily> load(const std::string& path,
                                   const Options& options = Options::from_environment());

  /// Takes a family file's text and its sources from memory.
  ///
  /// Errors:  kInvalidArgument as load.
  static Result<KernelFamily> from(std::string_view text, std::vector<KernelSource> sources,
                                   const Options& options = Options::from_environment());

  const std::string& name() const noexcept;

  /// One value a parameter, as `dim=4096`; a parameter that is left out has its default.
  ///
  /// Errors:  kInvalidArgument with the parameter, its value and what would work.
  Result<KernelShape> shape(std::span<const std::string> values) const;
  Result<KernelShape> shape(std::initializer_list<std::string> values) const;

 private:
  friend class Runtime;
  explicit KernelFamily(std::shared_ptr<const specializer::own::OwnFamily> family) noexcept;
  std::shared_ptr<const specializer::own::OwnFamily> family_;
};

/// What one kernel is specialised for: a family and a value for each of its parameters.
///
/// Threads: any; it does not change. Copies share it.
class BROACH_API KernelShape {
 public:
  std::string text() const;  ///< "acme.rms_norm dim=4096 dtype=bf16"

 private:
  friend class KernelFamily;
  friend class Runtime;
  explicit KernelShape(std::shared_ptr<const runtime::KernelShapeState> state) noexcept;
  std::shared_ptr<const runtime::KernelShapeState> state_;
};

/// Where the value of one parameter of a function lies, and its size.
struct KernelArgument {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

/// The arguments of a launch, in order, each of exactly its parameter's type. They refer to the
/// values that are passed, which live until the launch has returned.
template <class... Values>
std::array<KernelArgument, sizeof...(Values)> arguments(const Values&... values) noexcept {
  static_assert((std::is_trivially_copyable_v<Values> && ...), "a kernel takes bytes");
  return {KernelArgument{&values, sizeof values}...};
}

/// What a launch has beside its arguments.
///
/// Shapes:  `grid` in blocks; `block` in threads and `cluster` in blocks, all 0: what the function
///          states (its source by broach/kernel.cuh, or the family file).
struct KernelLaunch {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{0, 0, 0};
  std::array<std::uint32_t, 3> cluster{0, 0, 0};
  std::optional<std::uint32_t> dynamic_shared_bytes{};  ///< None: what the function states.
  Switch cooperative = Switch::kOff;   ///< The blocks run all at once and may wait for each other.
  Switch programmatic = Switch::kOff;  ///< May start before the launch in front of it has ended.
};

/// A loaded kernel: its functions can be launched.
///
/// Threads: any. A launch allocates nothing and takes no lock.
/// Owns:    shares the loaded module with the Runtime that made it, which outlives it.
class BROACH_API Kernel {
 public:
  /// Launches a function by the name that the family has for it, on a stream of the device (null:
  /// its default stream).
  ///
  /// Errors:  kNotFound naming the functions; kInvalidArgument where the arguments do not have the
  ///          number or sizes of the parameters; kLimitExceeded naming the bound; kUnsupported for
  ///          what the device lacks; kDriver.
  Result<void> launch(std::string_view function, const KernelLaunch& launch,
                      std::span<const KernelArgument> arguments, void* stream = nullptr) const;

  /// Writes to a __constant__ or __device__ variable of the kernel's own copy of its source.
  ///
  /// Errors:  kNotFound; kInvalidArgument when the variable is smaller.
  Result<void> set_symbol(std::string_view name, std::span<const std::byte> bytes,
                          void* stream = nullptr) const;

  KernelInfo info() const;

 private:
  friend class Runtime;
  explicit Kernel(std::shared_ptr<const runtime::Operator> op) noexcept;
  std::shared_ptr<const runtime::Operator> op_;
};

/// How far `Runtime::prepare` is.
struct PrepareProgress {
  std::size_t done = 0;
  std::size_t total = 0;
  std::string shape;             ///< The one that ended.
  const Error* fault = nullptr;  ///< Why there is no kernel for it, or null.
};

/// How `Runtime::prepare` works.
struct PrepareOptions {
  std::uint32_t jobs = 0;  ///< Shapes at a time; 0: the processor's threads.
  /// Called for each shape that ended, by one thread at a time.
  std::function<void(const PrepareProgress&)> progress;
};

/// A shape that could not be prepared.
struct NotPrepared {
  std::string shape;
  Error error;
};

}  // namespace broach
