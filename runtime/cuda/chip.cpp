#include "runtime/cuda/chip.hpp"

#include <fmt/core.h>

#include <array>
#include <fstream>
#include <string>

#include "runtime/cuda/compute_target.hpp"

namespace broach::runtime::cuda {
namespace {

specializer::Version version_of(const Driver& driver) {
  int version = 0;
  if (driver.driver_get_version(&version) != kSuccess || version < 0) return {};
  const auto number = static_cast<std::uint32_t>(version);
  return {number / 1000, number % 1000 / 10};
}

std::string words_for(specializer::Version version) {
  std::string line;
  std::ifstream proc("/proc/driver/nvidia/version");
  std::getline(proc, line);
  std::string release = driver_release(line);
  if (release.empty()) release = "unknown release";
  if (!version.stated()) return release;
  return fmt::format("{} ({})", release, specializer::cuda_words(version));
}

}  // namespace

Chip::~Chip() {
  if (primary != nullptr) driver->primary_release(device);
}

std::string Chip::words() const {
  return fmt::format("{} ({}, driver {})", name, target.name, driver_words);
}

Result<std::shared_ptr<const Chip>> Chip::open(int ordinal, const std::string& driver_library) {
  auto driver = Driver::open(driver_library);
  if (!driver) return driver.error();
  auto chip = std::make_shared<Chip>();
  chip->driver = *driver;
  const Driver& cu = *chip->driver;
  const auto failed = [&](Status status, const char* doing) {
    return driver_error(cu, status, fmt::format("{} of device \"cuda:{}\"", doing, ordinal));
  };

  Status status = cu.init(0);
  if (status == kNoDevice) {
    return Error{ErrorCode::kNotFound,
                 "the CUDA driver finds no device; use the device \"host\", or check "
                 "CUDA_VISIBLE_DEVICES and the permissions of /dev/nvidia*",
                 cu.words(status)};
  }
  if (status != kSuccess) return failed(status, "cuInit");
  int count = 0;
  status = cu.device_get_count(&count);
  if (status != kSuccess) return failed(status, "cuDeviceGetCount");
  if (ordinal < 0 || ordinal >= count) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("no device \"cuda:{}\": the driver has {} device{}", ordinal, count,
                             count == 1 ? "" : "s"),
                 {}};
  }
  status = cu.device_get(&chip->device, ordinal);
  if (status != kSuccess) return failed(status, "cuDeviceGet");

  std::array<char, 256> name{};
  status = cu.device_get_name(name.data(), static_cast<int>(name.size()) - 1, chip->device);
  if (status != kSuccess) return failed(status, "cuDeviceGetName");
  chip->name = name.data();
  chip->driver_version = version_of(cu);
  chip->driver_words = words_for(chip->driver_version);

  int major = 0;
  int minor = 0;
  int shared = 0;
  int multiprocessors = 0;
  for (const auto& [value, attribute] :
       {std::pair{&major, DeviceAttribute::kComputeMajor},
        std::pair{&minor, DeviceAttribute::kComputeMinor},
        std::pair{&shared, DeviceAttribute::kSharedPerBlockOptIn},
        std::pair{&multiprocessors, DeviceAttribute::kMultiprocessors}}) {
    status = cu.device_get_attribute(value, attribute, chip->device);
    if (status != kSuccess) return failed(status, "cuDeviceGetAttribute");
  }
  chip->shared_opt_in_bytes = static_cast<std::uint32_t>(shared);
  chip->multiprocessors = static_cast<std::uint32_t>(multiprocessors);
  auto target_name = compute_target(major, minor, specializer::known_targets());
  if (!target_name) {
    Error error = target_name.error();
    error.message = fmt::format("device \"cuda:{}\" ({}): {}", ordinal, chip->name, error.message);
    return error;
  }
  auto target = specializer::parse_target(*target_name);
  if (!target) return target.error();
  chip->target = *std::move(target);

  status = cu.primary_retain(&chip->primary, chip->device);
  if (status != kSuccess) return failed(status, "cuDevicePrimaryCtxRetain");
  return std::shared_ptr<const Chip>(std::move(chip));
}

ContextScope::ContextScope(const Chip& chip) noexcept : driver_(*chip.driver) {
  Context current = nullptr;
  status_ = driver_.context_get_current(&current);
  if (status_ != kSuccess || current == chip.primary) return;
  // Only a library's kernels launch in a context they were not loaded in.
  if (current != nullptr && driver_.has_libraries()) {
    DeviceOrdinal device = -1;
    if (driver_.context_get_device(&device) == kSuccess && device == chip.device) {
      primary_ = false;
      return;
    }
  }
  status_ = driver_.context_push(chip.primary);
  pushed_ = status_ == kSuccess;
}

ContextScope::~ContextScope() {
  Context popped = nullptr;
  if (pushed_) driver_.context_pop(&popped);
}

}  // namespace broach::runtime::cuda
