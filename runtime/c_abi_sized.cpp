#include "runtime/c_abi_sized.hpp"

#include <fmt/core.h>

namespace broach::runtime {

Result<std::size_t> checked_size(const void* from, std::size_t least, std::size_t own,
                                 const char* name) {
  if (from == nullptr) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is NULL", name), {}};
  }
  std::size_t size = 0;
  std::memcpy(&size, from, sizeof size);
  if (size < least || size > kMostStructBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}.size is {}; set it to sizeof({}), {} in this library", name, size,
                             name, own),
                 {}};
  }
  const auto* bytes = static_cast<const unsigned char*>(from);
  for (std::size_t at = own; at < size; ++at) {
    if (bytes[at] == 0) continue;
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} sets a field at byte {} that this library does not know; it is "
                             "older than the header",
                             name, at),
                 {}};
  }
  return size;
}

Result<std::uint32_t> read_enum(std::uint32_t value, std::uint32_t last, const char* field) {
  if (value <= last) return value;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is {}; it must be 0 to {}", field, value, last),
               {}};
}

}  // namespace broach::runtime
