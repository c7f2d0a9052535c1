#pragma once

#include <memory>
#include <string>

#include "broach/export.hpp"
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

  std::string device_name() const;
  std::string target_name() const;

  struct State;
  State& state() noexcept { return *state_; }

 private:
  explicit Runtime(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace broach
