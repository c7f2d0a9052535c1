#pragma once

#include <dlfcn.h>

#include <span>
#include <string>
#include <string_view>

#include "broach/result.hpp"

namespace broach::runtime {

/// A driver's library, open until the process ends: drivers keep threads of their own.
struct DriverLibrary {
  void* handle = nullptr;
  std::string path;  ///< As it was asked for.
};

/// Opens the first of `candidates` that the loader can open, or `only` where it is not empty.
///
/// Errors:  kNotFound with `missing` and, in the detail, why each could not be opened.
Result<DriverLibrary> open_driver_library(std::span<const char* const> candidates,
                                          const std::string& only, std::string_view missing);

/// Resolves a driver's entry points into a table of function pointers.
class EntryPoints {
 public:
  explicit EntryPoints(const DriverLibrary& library) noexcept : library_(library.handle) {}

  template <class Entry>
  bool optional(const char* name, Entry& entry) noexcept {
    entry = reinterpret_cast<Entry>(dlsym(library_, name));
    return entry != nullptr;
  }

  template <class Entry>
  void required(const char* name, Entry& entry) noexcept {
    if (!optional(name, entry) && missing_ == nullptr) missing_ = name;
  }

  /// The first required entry point that is not there, or null.
  const char* missing() const noexcept { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

/// An error of a driver call: what was done to which object, and the driver's own words. CUDA and
/// HIP number their statuses alike here.
Error driver_call_error(int status, std::string_view doing, const std::string& words);

}  // namespace broach::runtime
