#include "cache/folder_listing.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "cache/fd.hpp"
#include "cache/os_error.hpp"

namespace broach::cache {
namespace {

struct CloseDirectory {
  void operator()(DIR* stream) const noexcept { closedir(stream); }
};

}  // namespace

Result<std::vector<std::string>> names_in(int folder, const std::string& path) {
  // A descriptor of its own: the stream moves the offset and closes what it was given.
  Fd own(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return os_error("list", path, errno);
  const std::unique_ptr<DIR, CloseDirectory> stream(fdopendir(own.get()));
  if (stream == nullptr) return os_error("list", path, errno);
  (void)own.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return os_error("list", path, errno);
  return names;
}

}  // namespace broach::cache
