#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/cuda/driver.hpp"
#include "specializer/target.hpp"
#include "specializer/version.hpp"

namespace broach::runtime::cuda {

/// One GPU with its primary context retained: what the device and its modules share.
///
/// Owns:    a reference to the primary context, the one that CUDA's runtime library uses too.
struct Chip {
  Chip() = default;
  ~Chip();
  Chip(const Chip&) = delete;
  Chip& operator=(const Chip&) = delete;

  std::shared_ptr<const Driver> driver;
  DeviceOrdinal device = 0;
  Context primary = nullptr;
  std::uint32_t shared_opt_in_bytes = 0;
  std::uint32_t multiprocessors = 1;
  std::string name;
  std::string driver_words;
  specializer::Version driver_version;
  specializer::Target target;

  /// Errors:  kNotFound when there is no driver or no such device; kUnsupported when no known
  ///          target serves it.
  static Result<std::shared_ptr<const Chip>> open(int ordinal, const std::string& driver_library);

  /// "NVIDIA H200 (sm_90a, driver 580.159.04 (CUDA 13.0))"
  std::string words() const;
};

/// Makes a context of the chip current for the calling thread, and gives the thread back its own
/// at the end. A context of the same chip that the engine has made current is used as it is.
class ContextScope {
 public:
  explicit ContextScope(const Chip& chip) noexcept;
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  Status status() const noexcept { return status_; }
  bool primary() const noexcept { return primary_; }

 private:
  const Driver& driver_;
  Status status_ = kSuccess;
  bool pushed_ = false;
  bool primary_ = true;
};

/// Lets the calling thread load and allocate while some other thread captures a stream, which in
/// CUDA's default mode would break that capture.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) noexcept : driver_(driver) {
    driver_.exchange_capture_mode(&mode_);
  }
  ~RelaxedCapture() { driver_.exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  CaptureMode mode_ = CaptureMode::kRelaxed;
};

}  // namespace broach::runtime::cuda
