#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "runtime/device.hpp"

namespace broach::test {

/// A device that passes everything on to another one, but can be told to capture and to refuse
/// binaries, and counts.
///
/// Threads: any, once it has been told.
class ProxyDevice final : public runtime::Device {
 public:
  explicit ProxyDevice(std::shared_ptr<runtime::Device> real) : real_(std::move(real)) {}

  std::atomic<bool> captures{false};
  std::atomic<int> refuse_loads{0};  ///< How many loads from now on are refused.
  std::atomic<int> loads{0};
  std::function<void(int number)> before_load;  ///< Called with 1 for the first load.

  std::string_view name() const override { return real_->name(); }
  std::string_view driver() const override { return real_->driver(); }
  specializer::Version driver_version() const override { return real_->driver_version(); }
  const specializer::Target& target() const override { return real_->target(); }
  std::uint32_t multiprocessors() const override { return real_->multiprocessors(); }
  Result<std::unique_ptr<runtime::Module>> load(std::span<const std::byte> binary,
                                                std::span<const std::string> functions) override {
    const int number = ++loads;
    if (before_load) before_load(number);
    if (refuse_loads > 0) {
      --refuse_loads;
      return Error{ErrorCode::kDriver, "the device refuses a binary: made up", {}};
    }
    return real_->load(binary, functions);
  }
  Result<bool> capturing(runtime::Stream) override { return captures.load(); }
  Result<void*> allocate(std::size_t bytes) override { return real_->allocate(bytes); }
  void free(void* memory) noexcept override { real_->free(memory); }
  Result<void> copy_to_device(void* to, const void* from, std::size_t bytes) override {
    return real_->copy_to_device(to, from, bytes);
  }
  Result<void> copy_to_host(void* to, const void* from, std::size_t bytes) override {
    return real_->copy_to_host(to, from, bytes);
  }
  Result<void> synchronize(runtime::Stream stream) override { return real_->synchronize(stream); }

 private:
  std::shared_ptr<runtime::Device> real_;
};

}  // namespace broach::test
