#pragma once

#include <sys/types.h>

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
#include "cache/trusted_path.hpp"

namespace broach::cache {

/// A cache directory that has been checked: nobody but its owner can put code there.
///
/// The path is walked and checked from / down (trusted_path.hpp), and what is open stays open, so
/// that a path which is swapped afterwards changes nothing. Folders inside are opened without
/// following symbolic links and checked alike.
///
/// Errors:  kDenied when owner or mode forbid the use, with the way out; kNotFound; kIo.
/// Threads: any.
/// Owns:    the descriptors of the directory and of the folders that were opened.
class Directory {
 public:
  /// Opens a directory, or makes sure that a missing one could be created. Writes nothing.
  static Result<std::unique_ptr<Directory>> open(std::filesystem::path path, Trust trust,
                                                 Readers readers = Readers::kOwner);

  /// A folder's descriptor ("objects/ab"); it lives as long as the pointer.
  Result<std::shared_ptr<const Fd>> folder(std::string_view name, IfMissing if_missing);

  /// The directory itself.
  Result<std::shared_ptr<const Fd>> root(IfMissing if_missing);

  /// Forgets every descriptor, so that a directory removed and made again is found anew.
  void refresh();

  /// Whether this process could write there now.
  Result<void> writable();

  /// The path without links, walked and checked anew, if it still leads to what is open here.
  ///
  /// Errors:  the walk's; kDenied where another directory is there now.
  Result<std::string> physical_path();

  const std::filesystem::path& path() const noexcept { return path_; }
  mode_t directory_mode() const noexcept { return readers_ == Readers::kOwner ? 0700 : 0755; }
  mode_t file_mode() const noexcept { return readers_ == Readers::kOwner ? 0600 : 0644; }
  Trust trust() const noexcept { return trust_; }
  Filesystem filesystem();

 private:
  Directory(std::filesystem::path path, Trust trust, Readers readers)
      : path_(std::move(path)), trust_(trust), readers_(readers) {}

  WalkRule rule(IfMissing if_missing) const;

  std::filesystem::path path_;
  Trust trust_;
  Readers readers_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Fd>, std::less<>> open_;
};

}  // namespace broach::cache
