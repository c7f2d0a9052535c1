#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "cache/fd.hpp"
#include "cache/filesystem.hpp"

namespace broach::cache {

/// Whose bytes a directory may hold.
enum class Trust : std::uint8_t {
  kOwn,        ///< Owned by this user.
  kInstalled,  ///< Owned by this user or by root: a layer that an image or a package brought.
  kSigned,     ///< Anybody's: each object needs a signature that is trusted.
};

enum class IfMissing : std::uint8_t { kFail, kCreate };

/// A cache directory that has been checked: nobody but its owner can put code there.
///
/// Checks are made on the open directory, so that a path which is swapped afterwards changes
/// nothing. Folders inside are opened without following symbolic links and checked alike.
///
/// Errors:  kDenied when owner or mode forbid the use, with the way out; kNotFound; kIo.
/// Threads: any.
/// Owns:    the descriptors of the directory and of the folders that were opened.
class Directory {
 public:
  /// Opens a directory, or makes sure that a missing one could be created. Writes nothing.
  static Result<std::unique_ptr<Directory>> open(std::filesystem::path path, Trust trust);

  /// A folder's descriptor ("objects/ab"); it lives as long as the pointer. Created with mode 0700.
  Result<std::shared_ptr<const Fd>> folder(std::string_view name, IfMissing if_missing);

  /// The directory itself.
  Result<std::shared_ptr<const Fd>> root(IfMissing if_missing);

  /// Forgets every descriptor, so that a directory removed and made again is found anew.
  void refresh();

  /// Whether this process could write there now.
  Result<void> writable();

  const std::filesystem::path& path() const noexcept { return path_; }
  Trust trust() const noexcept { return trust_; }
  Filesystem filesystem();

 private:
  Directory(std::filesystem::path path, Trust trust) : path_(std::move(path)), trust_(trust) {}

  std::filesystem::path path_;
  Trust trust_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Fd>, std::less<>> open_;
};

/// Opens a directory whose owner and mode are safe. A link in its place is followed only when this
/// user or root made it.
///
/// Errors:  kDenied with detail kUnsafe; kNotFound; the operating system's; with `what` ("cache
///          directory") in front of the path.
Result<Fd> open_checked_directory(const std::filesystem::path& path, std::string_view what,
                                  Trust trust);

/// The detail of an error that owner or mode caused, where the system's errors have "EACCES".
inline constexpr std::string_view kUnsafe = "unsafe";

/// Says whether a file or folder that fstat described may be a source of code.
///
/// Errors:  kDenied naming owner or mode; its detail is kUnsafe.
Result<void> check_owner_and_mode(std::string_view path, std::uint32_t owner, std::uint32_t mode,
                                  Trust trust);

}  // namespace broach::cache
