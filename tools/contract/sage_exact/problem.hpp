#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broach/result.hpp"
#include "runtime/device.hpp"
#include "runtime/sage_exact/launches.hpp"
#include "tools/contract/harness/device_memory.hpp"
#include "tools/contract/sage_exact/inputs.hpp"
#include "tools/contract/sage_exact/kernels.hpp"

namespace broach::contract::sage_exact {

/// A boundary tensor's name in the golden files, and its bytes.
struct NamedTensor {
  std::string_view name;
  const void* data;
  std::size_t bytes;
};

/// Digests by tensor name.
using Digests = std::vector<std::pair<std::string, std::string>>;

/// One interleaved projection on a device, with the memory of every boundary.
///
/// Threads: one.
/// Owns:    its device memory; device and kernels outlive it.
class Problem {
 public:
  /// Errors:  kOutOfMemory and the driver's.
  static Result<Problem> make(runtime::Device& device, std::uint32_t tokens, std::uint32_t heads,
                              std::span<const std::uint16_t> input,
                              const runtime::sage_exact::MeanDevice& mean_device = {});

  /// Fills outputs and workspace with a poison, launches boundaries 1 to 4 one after another, and
  /// waits.
  Result<void> run(const Kernels& kernels, Poison poison = Poison::kNan);

  /// Leaves the bf16 transpose of v unwritten from now on: it is for golden digests alone.
  void drop_transpose() noexcept { tensors_.v_t_bf16 = nullptr; }

  /// Launches boundaries 1 to 3.
  Result<void> launch_preparation(const Kernels& kernels);

  /// Launches boundary 4.
  Result<void> launch_attention(const Kernels& kernels);

  /// Every boundary tensor, in order; `v_t_bf16` too.
  std::vector<NamedTensor> tensors() const;

  /// The bytes of one tensor, on the host.
  Result<std::vector<std::byte>> bytes_of(std::string_view name) const;

  /// SHA-256 of every tensor but the input, several at a time.
  Result<Digests> digests() const;

  /// The final maximum and denominator of each row, [H, N].
  Result<std::vector<float>> softmax_max() const;
  Result<std::vector<float>> softmax_sum() const;

 private:
  struct Free {
    runtime::Device* device;
    void operator()(void* memory) const noexcept { device->free(memory); }
  };
  using Memory = std::unique_ptr<void, Free>;

  explicit Problem(runtime::Device& device) : device_(&device) {}
  Result<void*> allocate(std::size_t bytes);
  Result<void> fill(Poison poison);

  runtime::Device* device_;
  runtime::sage_exact::Sizes sizes_;
  runtime::sage_exact::MeanGeometry geometry_;
  std::vector<Memory> memory_;
  std::vector<std::pair<void*, std::size_t>> outputs_;  ///< What is poisoned.
  runtime::sage_exact::Tensors tensors_;
  broach_sage_exact_tensor q_{}, k_{}, v_{};
  runtime::sage_exact::Output out_;
};

}  // namespace broach::contract::sage_exact
