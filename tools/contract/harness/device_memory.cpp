#include "tools/contract/harness/device_memory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace broach::contract {
namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr auto kGuard = std::byte{0xc3};

}  // namespace

Result<DeviceBytes> DeviceBytes::of_size(runtime::Device& device, std::size_t bytes) {
  auto memory = device.allocate(std::max<std::size_t>(bytes, 1));
  if (!memory) return memory.error();
  return DeviceBytes(device, *memory, bytes);
}

Result<DeviceBytes> DeviceBytes::copy_of(runtime::Device& device, std::span<const std::byte> from) {
  auto bytes = of_size(device, from.size());
  if (!bytes) return bytes;
  if (from.empty()) return bytes;
  if (auto copied = device.copy_to_device(bytes->data(), from.data(), from.size()); !copied) {
    return copied.error();
  }
  return bytes;
}

Result<GuardedBytes> GuardedBytes::of_size(runtime::Device& device, std::size_t bytes) {
  auto memory = DeviceBytes::of_size(device, bytes + kGuardBytes);
  if (!memory) return memory.error();
  return GuardedBytes(std::move(*memory), bytes);
}

Result<void> GuardedBytes::poison(Poison poison) {
  const auto pattern = static_cast<std::uint16_t>(poison);
  std::vector<std::byte> bytes(size_ + kGuardBytes, kGuard);
  for (std::size_t i = 0; i < size_; ++i) {
    bytes[i] = static_cast<std::byte>(i % 2 == 0 ? pattern & 0xff : pattern >> 8);
  }
  return memory_.device().copy_to_device(memory_.data(), bytes.data(), bytes.size());
}

Result<void> GuardedBytes::check_guard(std::string_view name) const {
  std::vector<std::byte> guard(kGuardBytes);
  const auto* const end = static_cast<const std::byte*>(memory_.data()) + size_;
  if (auto copied = memory_.device().copy_to_host(guard.data(), end, kGuardBytes); !copied) {
    return copied;
  }
  const auto touched =
      std::find_if(guard.begin(), guard.end(), [](std::byte at) { return at != kGuard; });
  if (touched == guard.end()) return {};
  return Error{ErrorCode::kInternal,
               fmt::format("the kernel wrote {} bytes past the end of the {}",
                           touched - guard.begin() + 1, name),
               ""};
}

Result<void> GuardedBytes::read(std::span<std::byte> to) const {
  if (to.empty()) return {};
  return memory_.device().copy_to_host(to.data(), memory_.data(), to.size());
}

}  // namespace broach::contract
