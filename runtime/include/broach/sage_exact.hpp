#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "broach/export.hpp"
#include "broach/result.hpp"
#include "broach/sage_exact.h"

namespace broach {

class Runtime;

/// A part of sage_exact that has a plan of its own.
enum class SageBoundary : std::uint8_t { kPrep, kKMean, kQkInt8, kVFp8, kAttention };

/// How attention is computed; every schedule has the same bits.
enum class SageSchedule : std::uint8_t {
  kDefault,    ///< The target's own choice.
  kPlain,      ///< Step by step; every target has it.
  kWarpgroup,  ///< sm_90a.
};

/// What one plan of sage_exact is specialised for. Tokens, heads and strides are run-time values.
///
/// Shapes:  multiprocessors 1..1024; threads_per_multiprocessor a multiple of 128 up to 4096. They
///          order the sums of the mean of k, and only of that; the golden bytes are an H200's.
/// Source:  docs/families/sage_exact.md.
struct SageExactShape {
  SageBoundary boundary = SageBoundary::kAttention;  ///< What a request has here does not matter.
  SageSchedule schedule = SageSchedule::kDefault;
  std::uint32_t multiprocessors = 132;
  std::uint32_t threads_per_multiprocessor = 2048;

  friend bool operator==(const SageExactShape&, const SageExactShape&) = default;
};

/// What a call works on: the C interface's struct (broach/sage_exact.h) with its size and zeros.
struct SageExactArgs : broach_sage_exact_args {
  SageExactArgs() noexcept : broach_sage_exact_args{} { size = sizeof(broach_sage_exact_args); }
};
struct SageExactPrepArgs : broach_sage_exact_prep_args {
  SageExactPrepArgs() noexcept : broach_sage_exact_prep_args{} {
    size = sizeof(broach_sage_exact_prep_args);
  }
};

/// Attention with int8 q and k and E4M3 p and v, byte for byte its reference's: a small handle on
/// the plans of its boundaries.
///
/// Threads: any. A call looks nothing up, allocates nothing and takes no lock.
/// Owns:    shares the loaded modules with the Runtime that made it.
class BROACH_API SageExact {
 public:
  struct Operators;
  explicit SageExact(std::shared_ptr<const Operators> operators) noexcept;

  /// Bytes of scratch for any call of this size; 0 for sizes that are not served.
  std::size_t workspace_bytes(std::int32_t tokens, std::int32_t heads) const noexcept;

  /// Where the tensors of boundaries 1 to 3 lie in a call's workspace.
  ///
  /// Errors:  kInvalidArgument naming the argument, its value and its bound.
  Result<broach_sage_exact_tensors> places(const broach_sage_exact_args& args) const;

  /// Launches boundaries 1 to 4 on a stream of the device (null: its default stream).
  ///
  /// Errors:  kInvalidArgument naming the argument, its value and its bound; kDriver.
  Result<void> run(const broach_sage_exact_args& args, void* stream) const;

  /// One boundary alone, between workspace and arguments as `run` has them.
  Result<void> k_mean(const broach_sage_exact_args& args, void* stream) const;
  Result<void> qk_int8(const broach_sage_exact_args& args, void* stream) const;
  Result<void> v_fp8(const broach_sage_exact_args& args, void* stream) const;

  /// Attention of what lies in the workspace, or of `args.quantised` where it is set.
  Result<void> attention(const broach_sage_exact_args& args, void* stream) const;

  /// RMS norm and rotation of q or k, ahead of the others.
  Result<void> prep(const broach_sage_exact_prep_args& args, void* stream) const;

  SageExactShape shape() const noexcept;  ///< Of attention, with every default replaced.

 private:
  std::shared_ptr<const Operators> operators_;
};

/// The operator on a runtime's device; the same plans for the same shape. `stream` is one that the
/// caller may be capturing, or null.
///
/// Errors:  the shape's; kNotWarmed; kCapturing when `stream` is capturing and a plan is not loaded
///          yet; the compiler's; kLimitExceeded.
BROACH_API Result<SageExact> sage_exact(Runtime& runtime, const SageExactShape& shape = {},
                                        void* stream = nullptr);

}  // namespace broach
