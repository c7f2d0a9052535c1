#include "runtime/hip/hip_device.hpp"

#include <fmt/core.h>

#include <array>
#include <vector>

#include "runtime/hip/hip_module.hpp"

namespace broach::runtime::hip {
namespace {

// Larger than any version of hipDeviceProp_t, which has grown from 0.8 to 1.5 KiB.
constexpr std::size_t kPropertiesRoom = 16 * 1024;

class HipDevice final : public Device {
 public:
  explicit HipDevice(std::shared_ptr<const Chip> chip) noexcept
      : chip_(std::move(chip)), hip_(*chip_->driver) {}

  std::string_view name() const override { return chip_->name; }
  std::string_view driver() const override { return chip_->driver_words; }
  const specializer::Target& target() const override { return chip_->target; }

  Result<std::unique_ptr<Module>> load(std::span<const std::byte> binary,
                                       std::span<const std::string> functions) override {
    return HipModule::load(chip_, binary, functions);
  }

  Result<bool> capturing(Stream stream) override {
    const DeviceScope scope(*chip_);
    CaptureStatus capture = CaptureStatus::kNone;
    const Status status =
        scope.status() == kSuccess
            ? hip_.stream_is_capturing(static_cast<StreamHandle>(stream), &capture)
            : scope.status();
    if (status == kCaptureImplicit) return true;
    if (status != kSuccess) return failed(status, "asking whether the stream captures");
    return capture != CaptureStatus::kNone;
  }

  Result<void*> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    auto done = in_scope([&] { return hip_.memory_allocate(&memory, bytes); },
                         [&] { return fmt::format("allocating {} bytes", bytes); });
    if (!done) return done.error();
    return memory;
  }

  void free(void* memory) noexcept override {
    if (memory == nullptr) return;
    const DeviceScope scope(*chip_);
    if (scope.status() == kSuccess) hip_.memory_free(memory);
  }

  Result<void> copy_to_device(void* to, const void* from, std::size_t bytes) override {
    return in_scope([&] { return hip_.copy_to_device(to, from, bytes); },
                    [&] { return fmt::format("copying {} bytes to it", bytes); });
  }

  Result<void> copy_to_host(void* to, const void* from, std::size_t bytes) override {
    return in_scope([&] { return hip_.copy_to_host(to, from, bytes); },
                    [&] { return fmt::format("copying {} bytes from it", bytes); });
  }

  Result<void> synchronize(Stream stream) override {
    return in_scope([&] { return hip_.stream_synchronize(static_cast<StreamHandle>(stream)); },
                    [] { return std::string("waiting for the stream"); });
  }

 private:
  template <class Call, class Words>
  Result<void> in_scope(Call call, Words words) const {
    const DeviceScope scope(*chip_);
    const Status status = scope.status() == kSuccess ? call() : scope.status();
    if (status == kSuccess) return {};
    return failed(status, words());
  }

  Error failed(Status status, std::string_view doing) const {
    return driver_error(hip_, status, fmt::format("{}: {}", chip_->name, doing));
  }

  std::shared_ptr<const Chip> chip_;
  const Driver& hip_;
};

}  // namespace

Result<std::shared_ptr<Device>> open_hip_device(int ordinal, const std::string& library) {
  auto driver = Driver::open(library);
  if (!driver) return driver.error();
  auto chip = std::make_shared<Chip>();
  chip->driver = *driver;
  chip->ordinal = ordinal;
  const Driver& hip = *chip->driver;
  const auto failed = [&](Status status, const char* doing) {
    return driver_error(hip, status, fmt::format("{} of device \"hip:{}\"", doing, ordinal));
  };

  Status status = hip.init(0);
  int count = 0;
  if (status == kSuccess) status = hip.get_device_count(&count);
  const bool none = status == kNoDevice || status == kInvalidDevice;
  if (status != kSuccess && !none) return failed(status, "hipInit");
  if (none || ordinal < 0 || ordinal >= count) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("no device \"hip:{}\": the HIP run time has {} device{}; check "
                             "HIP_VISIBLE_DEVICES and the permissions of /dev/kfd",
                             ordinal, count, count == 1 ? "" : "s"),
                 {}};
  }
  std::array<char, 256> name{};
  status = hip.device_get_name(name.data(), static_cast<int>(name.size()) - 1, ordinal);
  if (status != kSuccess) return failed(status, "hipDeviceGetName");
  chip->name = name.data();
  int version = 0;
  status = hip.driver_get_version(&version);
  if (status != kSuccess) return failed(status, "hipDriverGetVersion");
  chip->driver_words =
      fmt::format("HIP {}.{}.{}", version / 10000000, version / 100000 % 100, version % 100000);
  std::vector<char> properties(kPropertiesRoom);
  status = hip.get_device_properties(properties.data(), ordinal);
  if (status != kSuccess) return failed(status, "hipGetDeviceProperties");
  auto target = specializer::parse_target(arch_in(properties));
  if (!target) {
    Error error = target.error();
    error.code = ErrorCode::kUnsupported;
    error.message = fmt::format("device \"hip:{}\" ({}): {}", ordinal, chip->name, error.message);
    return error;
  }
  chip->target = *std::move(target);
  return std::shared_ptr<Device>(std::make_shared<HipDevice>(std::move(chip)));
}

}  // namespace broach::runtime::hip
