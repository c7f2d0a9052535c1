#include "tools/broach/new_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cache/fd.hpp"
#include "cache/file.hpp"

namespace broach::tool {

Result<void> write_new_file(const std::string& path, std::span<const std::byte> bytes,
                            Replace replace) {
  if (replace == Replace::kYes) ::unlink(path.c_str());
  const cache::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file) return cache::write_bytes(file, bytes, path);
  const int error = errno;
  return Error{
      ErrorCode::kIo,
      fmt::format("{} cannot be written: {}", path, std::generic_category().message(error)), ""};
}

}  // namespace broach::tool
