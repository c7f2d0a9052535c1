#include "tools/contract/sage_exact/problem.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <future>

#include "tools/contract/sage_exact/golden.hpp"

namespace broach::contract::sage_exact {
namespace {

namespace sage = runtime::sage_exact;

Result<std::vector<float>> floats_of(runtime::Device& device, const float* from,
                                     std::size_t count) {
  std::vector<float> values(count);
  if (auto ok = device.copy_to_host(values.data(), from, count * sizeof(float)); !ok) {
    return ok.error();
  }
  return values;
}

}  // namespace

Result<void*> Problem::allocate(std::size_t bytes) {
  auto memory = device_->allocate(bytes);
  if (!memory) return memory.error();
  memory_.emplace_back(*memory, Free{device_});
  return *memory;
}

Result<Problem> Problem::make(runtime::Device& device, std::uint32_t tokens, std::uint32_t heads,
                              std::span<const std::uint16_t> input,
                              const sage::MeanDevice& mean_device) {
  Problem problem(device);
  problem.sizes_ = {tokens, heads};
  problem.geometry_ = sage::mean_geometry(tokens, heads, mean_device);
  const sage::Sizes& sizes = problem.sizes_;
  const sage::WorkspacePlan plan =
      sage::plan_workspace(sizes, problem.geometry_, sage::Packing::kTiles);
  const std::size_t rows = std::size_t{tokens} * heads;
  const std::size_t bytes[] = {input.size_bytes(),
                               plan.bytes,
                               std::size_t{heads} * kHeadDim * sizes.padded() * 2,
                               sizes.elements() * 2,
                               rows * sizeof(float),
                               rows * sizeof(float)};
  void* memory[std::size(bytes)] = {};
  for (std::size_t i = 0; i < std::size(bytes); ++i) {
    auto allocated = problem.allocate(bytes[i]);
    if (!allocated) return allocated.error();
    memory[i] = *allocated;
    if (i > 0) problem.outputs_.emplace_back(memory[i], bytes[i]);
  }
  if (auto ok = device.copy_to_device(memory[0], input.data(), bytes[0]); !ok) return ok.error();
  problem.tensors_ = sage::tensors_in(memory[1], plan, sage::Packing::kTiles);
  problem.tensors_.v_t_bf16 = static_cast<std::uint16_t*>(memory[2]);
  const auto part = static_cast<std::int64_t>(heads * kHeadDim);
  const auto* const first = static_cast<const std::uint16_t*>(memory[0]);
  problem.q_ = {first, 3 * part, 0};
  problem.k_ = {first + part, 3 * part, 0};
  problem.v_ = {first + 2 * part, 3 * part, 0};
  problem.out_ = {static_cast<std::uint16_t*>(memory[3]), part, static_cast<std::int64_t>(kHeadDim),
                  static_cast<float*>(memory[4]), static_cast<float*>(memory[5])};
  return problem;
}

Result<void> Problem::fill(Poison poison) {
  for (const auto& [memory, bytes] : outputs_) {
    // In parts: a large tensor need not exist twice on the host.
    constexpr std::size_t kPart = std::size_t{1} << 26;
    const std::vector<std::uint16_t> pattern((std::min(bytes, kPart) + 1) / 2,
                                             static_cast<std::uint16_t>(poison));
    for (std::size_t at = 0; at < bytes; at += kPart) {
      auto ok = device_->copy_to_device(static_cast<std::byte*>(memory) + at, pattern.data(),
                                        std::min(kPart, bytes - at));
      if (!ok) return ok;
    }
  }
  return {};
}

Result<void> Problem::launch_preparation(const Kernels& kernels) {
  const sage::Functions& functions = kernels.functions();
  if (auto ok = sage::launch_k_mean(functions, k_, sizes_, geometry_, tensors_, nullptr); !ok) {
    return ok;
  }
  if (auto ok = sage::launch_qk_int8(functions, q_, k_, sizes_, geometry_, tensors_, nullptr);
      !ok) {
    return ok;
  }
  return sage::launch_v_fp8(functions, v_, sizes_, tensors_, nullptr);
}

Result<void> Problem::launch_attention(const Kernels& kernels) {
  return sage::launch_attention(kernels.functions(), tensors_.quantised, tensors_.packed, out_,
                                sizes_, nullptr);
}

Result<void> Problem::run(const Kernels& kernels, Poison poison) {
  if (auto ok = fill(poison); !ok) return ok;
  if (auto ok = launch_preparation(kernels); !ok) return ok;
  if (auto ok = launch_attention(kernels); !ok) return ok;
  return device_->synchronize(nullptr);
}

std::vector<NamedTensor> Problem::tensors() const {
  const std::size_t channels = std::size_t{sizes_.heads} * kHeadDim;
  const broach_sage_exact_quantised& quantised = tensors_.quantised;
  return {{"k_mean", tensors_.k_mean, channels * 2},
          {"q_int8", quantised.q, sizes_.elements()},
          {"q_scale", quantised.q_scale, sizes_.heads * sizes_.q_groups() * sizeof(float)},
          {"k_int8", quantised.k, sizes_.elements()},
          {"k_scale", quantised.k_scale, sizes_.heads * sizes_.tiles() * sizeof(float)},
          {"v_t_bf16", tensors_.v_t_bf16, channels * sizes_.padded() * 2},
          {"v_fp8", quantised.v, channels * sizes_.padded()},
          {"v_scale", quantised.v_scale, channels * sizeof(float)},
          {"out", out_.data, sizes_.elements() * 2}};
}

Result<std::vector<std::byte>> Problem::bytes_of(std::string_view name) const {
  for (const NamedTensor& tensor : tensors()) {
    if (tensor.name != name) continue;
    std::vector<std::byte> bytes(tensor.bytes);
    if (auto ok = device_->copy_to_host(bytes.data(), tensor.data, tensor.bytes); !ok) {
      return ok.error();
    }
    return bytes;
  }
  return Error{
      ErrorCode::kInvalidArgument, fmt::format("there is no boundary tensor {}", name), {}};
}

Result<Digests> Problem::digests() const {
  std::vector<std::pair<std::string, std::future<std::string>>> pending;
  for (const NamedTensor& tensor : tensors()) {
    auto bytes = bytes_of(tensor.name);
    if (!bytes) return bytes.error();
    pending.emplace_back(
        std::string(tensor.name),
        // On this thread where no other can be started.
        std::async([owned = *std::move(bytes)] { return sha256_of(owned.data(), owned.size()); }));
  }
  Digests digests;
  for (auto& [name, digest] : pending) digests.emplace_back(name, digest.get());
  return digests;
}

Result<std::vector<float>> Problem::softmax_max() const {
  return floats_of(*device_, out_.softmax_max, std::size_t{sizes_.tokens} * sizes_.heads);
}

Result<std::vector<float>> Problem::softmax_sum() const {
  return floats_of(*device_, out_.softmax_sum, std::size_t{sizes_.tokens} * sizes_.heads);
}

}  // namespace broach::contract::sage_exact
