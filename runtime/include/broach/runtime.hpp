#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/export.hpp"
#include "broach/kernel.hpp"
#include "broach/metrics.hpp"
#include "broach/options.hpp"
#include "broach/result.hpp"

namespace broach {

/// One device with the cache and the compilers behind its operators. Each family of kernels has a
/// header with functions that make its operators of a runtime (broach/FAMILY.hpp).
///
/// Threads: any.
class BROACH_API Runtime {
 public:
  /// Errors:  kNotFound when the named device cannot be opened, with what was tried.
  static Result<Runtime> create(Options options);
  ~Runtime();
  Runtime(Runtime&&) noexcept;
  Runtime& operator=(Runtime&&) noexcept;

  /// What was counted and timed so far: look-ups, waits, compiles, publishes, loads.
  Metrics metrics() const;

  /// The kernel of a shape of an engine's own family; the same one for the same shape. `stream` is
  /// one that the caller may be capturing, or null.
  ///
  /// Under first use `wait` it is compiled where no cache layer has it. Under `background` that is
  /// begun, and the error says so: such a family has no generic kernel to serve meanwhile.
  ///
  /// Errors:  the shape's on this device; kNotWarmed, its reason kPending under `background`;
  ///          kCapturing; the compiler's; kLimitExceeded for what the family refuses.
  Result<Kernel> kernel(const KernelShape& shape, void* stream = nullptr);

  /// The kernel of a shape where it is loaded; nothing while another thread loads or compiles it,
  /// which this begins. Never waits.
  ///
  /// Errors:  why there is none, as kernel; the next call begins again.
  Result<std::optional<Kernel>> try_kernel(const KernelShape& shape);

  /// Loads or compiles many, some at a time, and says which have no kernel. First use `never`
  /// loads alone.
  std::vector<NotPrepared> prepare(std::span<const KernelShape> shapes,
                                   const PrepareOptions& options = {});

  /// Compiles a source that has one kernel function of this name, and no parameters, for this
  /// device, or takes it from the cache.
  ///
  /// Errors:  as kernel.
  Result<Kernel> compile(std::string_view function, std::string_view source);

  /// Waits until no kernel is being compiled or loaded behind the caller's back: every promotion
  /// and every kernel that try_kernel began has ended.
  void wait_for_background();

  std::string device_name() const;
  std::string target_name() const;

  struct State;
  State& state() noexcept { return *state_; }

 private:
  explicit Runtime(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace broach
