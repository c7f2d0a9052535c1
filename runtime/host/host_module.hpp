#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "kernel_src/broach/launch_geometry.h"
#include "kernel_src/host/abi.h"

namespace broach::runtime::host {

/// A kernel of a loaded object.
struct HostKernel {
  std::string name;
  const BroachHostRecord* record = nullptr;
  BroachHostEntry entry = nullptr;
  const BroachLaunchGeometry* geometry = nullptr;  ///< Null where the kernel states none.
};

/// A variable that an object exports.
struct HostVariable {
  void* address = nullptr;
  std::size_t bytes = 0;
};

/// A shared object of host-compiled kernels, loaded from bytes.
///
/// The bytes never have a name that another process could write to: an anonymous file, or where
/// the system does not run those, a file in a fresh private directory that is removed at once.
///
/// Owns:    the loader's handle and the file behind it.
class HostObject {
 public:
  /// Loads the bytes and finds each function's entry and record.
  ///
  /// Errors:  kDriver with the loader's words; kDamaged when a function, its record, or this
  ///          host ABI version is missing, naming it.
  static Result<std::unique_ptr<HostObject>> load(std::span<const std::byte> bytes,
                                                  std::span<const std::string> functions);
  ~HostObject();
  HostObject(const HostObject&) = delete;
  HostObject& operator=(const HostObject&) = delete;

  std::span<const HostKernel> kernels() const noexcept { return kernels_; }

  /// A variable by name; a null address where the object exports none of it.
  HostVariable variable(std::string_view name) const;

 private:
  HostObject() = default;

  void* handle_ = nullptr;
  std::vector<HostKernel> kernels_;
};

}  // namespace broach::runtime::host
