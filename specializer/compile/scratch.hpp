#pragma once

#include <filesystem>
#include <span>

#include "broach/result.hpp"

namespace broach::specializer {

/// A private directory for one worker's temporary files, removed with its owner.
///
/// The worker locks it while it lives (tools/rtc), so that a later process can tell what a crash
/// left behind from what is in use.
///
/// Threads: one at a time.
/// Owns:    the directory.
class Scratch {
 public:
  /// Makes one in the first of `parents` that has room for a compile, else in the first where that
  /// works at all. What crashed processes of this user left there is removed, once a process.
  ///
  /// Errors:  kIo with every parent and why it cannot be used.
  static Result<Scratch> create(std::span<const std::filesystem::path> parents);

  Scratch() = default;  ///< None.
  ~Scratch();
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&& other) noexcept;

  /// Empty where there is none.
  const std::filesystem::path& path() const noexcept { return path_; }

  /// Leaves the directory to the process that it belongs to.
  void abandon() noexcept { path_.clear(); }

 private:
  std::filesystem::path path_;
};

/// Removes what is left in a directory of workers that are gone; says how many.
///
/// Directories younger than `age_s` are left alone: their workers may not have locked them yet.
std::size_t sweep_scratch(const std::filesystem::path& parent, std::int64_t age_s);

}  // namespace broach::specializer
