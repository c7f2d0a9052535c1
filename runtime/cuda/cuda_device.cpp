#include "runtime/cuda/cuda_device.hpp"

#include <fmt/core.h>

#include "runtime/cuda/chip.hpp"
#include "runtime/cuda/cuda_module.hpp"

namespace broach::runtime::cuda {
namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(std::shared_ptr<const Chip> chip) noexcept
      : chip_(std::move(chip)), cu_(*chip_->driver) {}

  std::string_view name() const override { return chip_->name; }
  std::string_view driver() const override { return chip_->driver_words; }
  specializer::Version driver_version() const override { return chip_->driver_version; }
  const specializer::Target& target() const override { return chip_->target; }
  std::uint32_t multiprocessors() const override { return chip_->multiprocessors; }

  Result<std::unique_ptr<Module>> load(std::span<const std::byte> binary,
                                       std::span<const std::string> functions) override {
    return CudaModule::load(chip_, binary, functions);
  }

  Result<bool> capturing(Stream stream) override {
    const ContextScope scope(*chip_);
    CaptureStatus capture = CaptureStatus::kNone;
    const Status status = scope.status() == kSuccess
                              ? cu_.stream_is_capturing(static_cast<StreamHandle>(stream), &capture)
                              : scope.status();
    // The default stream cannot be asked while another stream that waits for it captures.
    if (status == kCaptureImplicit) return true;
    if (status != kSuccess) return failed(status, "asking whether the stream captures");
    return capture != CaptureStatus::kNone;
  }

  Result<void*> allocate(std::size_t bytes) override {
    const RelaxedCapture relaxed(cu_);
    DevicePointer memory = 0;
    auto done = in_scope([&] { return cu_.memory_allocate(&memory, bytes); },
                         [&] { return fmt::format("allocating {} bytes", bytes); });
    if (!done) return done.error();
    return reinterpret_cast<void*>(memory);
  }

  void free(void* memory) noexcept override {
    if (memory == nullptr) return;
    const ContextScope scope(*chip_);
    const RelaxedCapture relaxed(cu_);
    if (scope.status() == kSuccess) cu_.memory_free(reinterpret_cast<DevicePointer>(memory));
  }

  Result<void> copy_to_device(void* to, const void* from, std::size_t bytes) override {
    return in_scope(
        [&] { return cu_.copy_to_device(reinterpret_cast<DevicePointer>(to), from, bytes); },
        [&] { return fmt::format("copying {} bytes to it", bytes); });
  }

  Result<void> copy_to_host(void* to, const void* from, std::size_t bytes) override {
    return in_scope(
        [&] { return cu_.copy_to_host(to, reinterpret_cast<DevicePointer>(from), bytes); },
        [&] { return fmt::format("copying {} bytes from it", bytes); });
  }

  Result<void> synchronize(Stream stream) override {
    return in_scope([&] { return cu_.stream_synchronize(static_cast<StreamHandle>(stream)); },
                    [] { return std::string("waiting for the stream"); });
  }

 private:
  template <class Call, class Words>
  Result<void> in_scope(Call call, Words words) const {
    const ContextScope scope(*chip_);
    const Status status = scope.status() == kSuccess ? call() : scope.status();
    if (status == kSuccess) return {};
    return failed(status, words());
  }

  Error failed(Status status, std::string_view doing) const {
    return driver_error(cu_, status, fmt::format("{}: {}", chip_->name, doing));
  }

  std::shared_ptr<const Chip> chip_;
  const Driver& cu_;
};

}  // namespace

Result<std::shared_ptr<Device>> open_cuda_device(int ordinal, const std::string& driver_library) {
  auto chip = Chip::open(ordinal, driver_library);
  if (!chip) return chip.error();
  return std::shared_ptr<Device>(std::make_shared<CudaDevice>(*std::move(chip)));
}

}  // namespace broach::runtime::cuda
