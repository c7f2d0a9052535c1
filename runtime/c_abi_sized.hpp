#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "broach/result.hpp"

namespace broach::runtime {

/// More bytes than any structure of any release has, this one's successors included. A larger size
/// is not one, and nothing behind it is read.
inline constexpr std::size_t kMostStructBytes = 1024;

/// Reads the size that a caller's structure begins with. `least` is the structure's size in the
/// first header that had it, `own` its size in this library.
///
/// Errors:  kInvalidArgument for NULL or a size that no header had; kUnsupported when a field that
///          this library does not know is set.
Result<std::size_t> checked_size(const void* from, std::size_t least, std::size_t own,
                                 const char* name);

/// Copies a caller's structure, of whatever size its header had, over a zeroed one of this
/// library's size.
///
/// Errors:  as checked_size.
template <class Struct>
Result<Struct> sized_copy(const Struct* from, std::size_t least, const char* name) {
  static_assert(std::is_trivially_copyable_v<Struct> && sizeof(Struct) <= kMostStructBytes);
  auto size = checked_size(from, least, sizeof(Struct), name);
  if (!size) return size.error();
  Struct copy{};
  std::memcpy(&copy, from, std::min(*size, sizeof(Struct)));
  return copy;
}

/// Reads an enumerator of 0..last.
///
/// Errors:  kInvalidArgument naming the field.
Result<std::uint32_t> read_enum(std::uint32_t value, std::uint32_t last, const char* field);

/// Reads the enumerators of a structure, and keeps the first field's error for its end.
class EnumReader {
 public:
  /// Sets `into` to the enumerator, unless it is past `last`.
  template <class Enum>
  void read(std::uint32_t value, Enum last, const char* field, Enum& into) {
    auto known = read_enum(value, static_cast<std::uint32_t>(last), field);
    if (known) {
      into = static_cast<Enum>(*known);
    } else if (all_) {
      all_ = known.error();
    }
  }
  /// Errors:  read_enum's, of the first field that has one.
  const Result<void>& all() const noexcept { return all_; }

 private:
  Result<void> all_;
};

}  // namespace broach::runtime
