#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "broach/result.hpp"
#include "cache/fd.hpp"

namespace broach::cache {

/// A lock between processes that the kernel releases when its holder dies, however it dies.
///
/// The lock is on an open file (flock), not on the file's being there: a leftover file blocks
/// nobody. The holder removes the file as it lets go, so a lock that was taken counts only while
/// the name still leads to the locked file.
///
/// Threads: one at a time.
class FileLock {
 public:
  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  /// Takes the lock if nobody holds it; absent when somebody does. `folder` must outlive the lock.
  ///
  /// Errors:  the operating system's; ENOLCK and the like where the file system has no locks.
  static Result<std::optional<FileLock>> try_take(int folder, const std::string& name);

  /// The same, waiting for a while.
  static Result<std::optional<FileLock>> take_within(int folder, const std::string& name,
                                                     std::chrono::milliseconds patience);

  /// What the holder wrote with `write`, absent when nobody holds the lock.
  static std::optional<std::string> held_text(int folder, const std::string& name);

  /// Leaves a note for those who wait. Failing to is no error.
  void write(const std::string& text) noexcept;

  /// The note that this lock's file holds: the last holder's until `write`.
  std::string text() const;

  /// Leaves the file, and the note in it, when the lock is let go.
  void keep_file() noexcept { keep_file_ = true; }

 private:
  FileLock(int folder, std::string name, Fd fd)
      : folder_(folder), name_(std::move(name)), fd_(std::move(fd)) {}

  int folder_;
  std::string name_;
  Fd fd_;
  bool keep_file_ = false;
};

/// Removes the lock files that nobody holds; says how many.
std::size_t sweep_locks(int folder, const std::string& path);

}  // namespace broach::cache
