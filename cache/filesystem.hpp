#pragma once

#include <cstdint>
#include <string>

namespace broach::cache {

/// Whether other machines can have a file system's files open too.
enum class Reach : std::uint8_t { kLocal, kNetwork };

struct Filesystem {
  std::string name = "unknown";   ///< "ext4", "nfs", "tmpfs"…
  Reach reach = Reach::kNetwork;  ///< An unknown one counts as shared.
};

/// What a file system has left for this user's files.
///
/// Units:   bytes and files (inodes); a total of 0 is one that the file system does not state.
struct FreeSpace {
  std::uint64_t bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t files = 0;
  std::uint64_t total_files = 0;
};

/// All totals are 0 where it cannot be asked.
FreeSpace free_space_of(int fd);

/// The file system an open file or directory is on, as statfs tells it.
Filesystem filesystem_of(int fd);

/// The same from statfs's magic number.
Filesystem filesystem_named(std::uint64_t magic);

}  // namespace broach::cache
