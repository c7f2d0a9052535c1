#pragma once

#include <cstdint>
#include <string>

namespace broach::cache {

/// Whether other machines can have a file system's files open too.
enum class Reach : std::uint8_t { kLocal, kNetwork };

struct Filesystem {
  std::string name = "unknown";  ///< "ext4", "nfs", "tmpfs"…
  Reach reach = Reach::kLocal;
};

/// The file system an open file or directory is on, as statfs tells it.
Filesystem filesystem_of(int fd);

/// The same from statfs's magic number.
Filesystem filesystem_named(std::uint64_t magic);

}  // namespace broach::cache
