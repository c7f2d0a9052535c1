#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "cache/fd.hpp"

namespace broach::cache {

/// Whose bytes a path may hold.
enum class Trust : std::uint8_t {
  kOwn,        ///< Owned by this user.
  kInstalled,  ///< Owned by this user or by root: a layer that an image or a package brought.
  kSigned,     ///< Anybody's: each object needs a signature that is trusted.
};

enum class IfMissing : std::uint8_t { kFail, kCreate };

/// Who may read what is written.
enum class Readers : std::uint8_t {
  kOwner,     ///< Modes 0700 and 0600.
  kEveryone,  ///< 0755 and 0644, less the process's umask: a layer that an image carries.
};

/// What a walk may pass, and what for.
struct WalkRule {
  Trust trust = Trust::kInstalled;
  std::string_view what;  ///< For people: "cache directory".
  IfMissing if_missing = IfMissing::kFail;
  mode_t created_mode = 0700;
  /// A user whose code this process runs anyway, such as the owner of the library's own file.
  std::optional<uid_t> also{};
};

/// Where a walk ended.
struct Reached {
  Fd fd;                 ///< The directory as O_PATH: the path's own, or the deepest that exists.
  std::string physical;  ///< Its path without links, from / down.
  bool whole = false;    ///< It is the path's own.
};

/// Walks a directory's path from / down, by descriptor, and checks each step.
///
/// Each directory and each symbolic link on the way belongs to root or to this user, and no
/// directory can be written by its group or by others, except sticky ones (/tmp). So nobody else
/// can put another thing in the place of any part, before or after the walk. Missing directories
/// are created on the walk itself. Under kSigned nothing is checked.
///
/// Errors:  kDenied with reason kUnsafe, naming the part and the way out; the operating system's.
/// Source:  docs/trust.md.
Result<Reached> walk(const std::filesystem::path& path, const WalkRule& rule);

/// Walks to a directory and opens it for reading.
///
/// Errors:  as `walk`; kNotFound.
Result<Fd> open_trusted_directory(const std::filesystem::path& path, const WalkRule& rule);

/// A regular file at the end of a walk.
struct TrustedFile {
  Fd fd;
  struct stat status {};
};

/// Walks to a regular file and opens it for reading, without waiting for a pipe. A relative path
/// begins at the working directory.
///
/// Errors:  as `walk`; kNotFound; kDamaged for what is no regular file.
Result<TrustedFile> open_trusted_file(const std::filesystem::path& path, const WalkRule& rule);

/// Says whether a file or folder that fstat described may be a source of code.
///
/// Errors:  kDenied naming owner or mode; its reason is kUnsafe.
Result<void> check_owner_and_mode(std::string_view path, std::uint32_t owner, std::uint32_t mode,
                                  Trust trust);

/// Whether a user number stands for users that this process's user namespace has no number for. It
/// can then be anybody's, this process's own number included.
bool stands_for_strangers(std::uint32_t owner);

}  // namespace broach::cache
