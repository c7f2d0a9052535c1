#include "cache/os_error.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/core.h>

namespace broach::cache {
namespace {

ErrorCode code_of(int number) {
  switch (number) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
      return ErrorCode::kDenied;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

std::string errno_symbol(int number) {
#ifdef __GLIBC__
  if (const char* name = strerrorname_np(number); name != nullptr) return name;
#endif
  return fmt::format("E{}", number);
}

Error os_error(std::string_view action, std::string_view object, int number) {
  return Error{
      code_of(number),
      fmt::format("cannot {} {}: {}", action, object, std::generic_category().message(number)),
      errno_symbol(number), number == EROFS ? Reason::kReadOnlyFileSystem : Reason::kNone};
}

}  // namespace broach::cache
