#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "broach/result.hpp"
#include "runtime/device.hpp"
#include "runtime/sage_exact/tensors.hpp"
#include "specializer/plan.hpp"

namespace broach::runtime::sage_exact {

/// One launch of the family.
enum class Step : std::uint8_t {
  kPrep,
  kMeanPart,
  kMean,
  kQInt8,
  kKInt8,
  kVRange,
  kVScale,
  kVFp8,
  kPack,
  kAttention,
};
constexpr std::size_t kSteps = 10;

/// The functions of the family's plans, by step.
///
/// Owns:    nothing; the modules outlive it.
class Functions {
 public:
  /// Adds a plan's functions.
  ///
  /// Errors:  kInternal naming a function that is no step; as Module::function.
  Result<void> add(const specializer::Plan& plan, Module& module);

  bool has(Step step) const noexcept { return stage(step).function != nullptr; }

  /// Query rows of a block of the attention kernel.
  std::uint32_t block_rows() const noexcept { return stage(Step::kAttention).block_rows; }

  /// Errors:  kInternal naming a step that no plan brought; the driver's.
  template <class Params>
  Result<void> launch(Step step, std::uint64_t x, std::uint64_t y, const Params& params,
                      Stream stream) const {
    return launch(step, x, y, &params, sizeof params, stream);
  }

 private:
  struct Stage {
    const Function* function = nullptr;
    std::uint32_t block_threads = 0;
    std::uint32_t dynamic_shared_bytes = 0;
    std::uint32_t block_rows = 0;
  };

  const Stage& stage(Step step) const noexcept { return stages_[static_cast<std::size_t>(step)]; }
  Result<void> launch(Step step, std::uint64_t x, std::uint64_t y, const void* params,
                      std::size_t bytes, Stream stream) const;

  std::array<Stage, kSteps> stages_;
};

/// Boundary 0, for q or k.
Result<void> launch_prep(const Functions& functions, const broach_sage_exact_prep_args& args,
                         const Sizes& sizes, Stream stream);

/// Boundary 1, the mean of k.
Result<void> launch_k_mean(const Functions& functions, const broach_sage_exact_tensor& k,
                           const Sizes& sizes, const MeanGeometry& geometry, const Tensors& tensors,
                           Stream stream);

/// Boundary 2, q and k as int8; reads the mean.
Result<void> launch_qk_int8(const Functions& functions, const broach_sage_exact_tensor& q,
                            const broach_sage_exact_tensor& k, const Sizes& sizes,
                            const MeanGeometry& geometry, const Tensors& tensors, Stream stream);

/// Boundary 3, v as E4M3.
Result<void> launch_v_fp8(const Functions& functions, const broach_sage_exact_tensor& v,
                          const Sizes& sizes, const Tensors& tensors, Stream stream);

/// The output of a launch of boundary 4.
struct Output {
  std::uint16_t* data = nullptr;  ///< [N, H, D] bf16
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;
  float* softmax_max = nullptr;  ///< [H, N], or null: not written
  float* softmax_sum = nullptr;  ///< likewise
};

/// Boundary 4, from quantised inputs; packs tiles first where the plan's kernel reads those.
Result<void> launch_attention(const Functions& functions,
                              const broach_sage_exact_quantised& quantised, void* packed,
                              const Output& out, const Sizes& sizes, Stream stream);

}  // namespace broach::runtime::sage_exact
