#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "cache/directory.hpp"
#include "cache/fd.hpp"

namespace broach::cache {

/// A regular file that was opened for reading and checked.
struct OpenFile {
  Fd fd;
  std::uint64_t bytes = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t used_unix_ms = 0;  ///< Access time: set by `touch`, whatever the mount does.
};

/// Opens a regular file in a folder without following a link or waiting for a pipe.
///
/// Errors:  kNotFound; kDamaged for a thing that is no regular file; kDenied for another's file;
///          the operating system's.
Result<OpenFile> open_file(int folder, const std::string& name, const std::string& path,
                           Trust trust);

/// Reads `count` bytes from `offset`.
///
/// Errors:  kDamaged when the file ends first; the operating system's.
Result<std::vector<std::byte>> read_bytes(const Fd& file, std::uint64_t offset, std::uint64_t count,
                                          const std::string& path);

Result<void> write_bytes(const Fd& file, std::span<const std::byte> bytes, const std::string& path);

/// Makes a whole file appear under a name at once, in place of what was there: written beside it
/// in `scratch`, synced, renamed, and the folder synced.
///
/// A scratch file is locked while its writer lives, so that a sweep can tell leftovers apart.
///
/// Errors:  the operating system's; nothing is left behind then.
Result<void> publish_file(int scratch, int folder, const std::string& name,
                          std::span<const std::byte> bytes, const std::string& path,
                          mode_t mode = 0600);

/// Removes the scratch files whose writers are gone; says how many.
std::size_t sweep_scratch(int scratch, const std::string& path);

/// Milliseconds since 1970.
std::int64_t now_unix_ms() noexcept;

}  // namespace broach::cache
