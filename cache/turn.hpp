#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cache/cache.hpp"
#include "cache/directory.hpp"
#include "cache/file_lock.hpp"
#include "cache/reporter.hpp"

namespace broach::cache {

/// The right to make one key, among all processes that share a directory.
///
/// Waiting follows the holder: it ends when the object is there, when the holder lets go or dies,
/// or when the holder does not move (its process is stopped, or one stage lasts longer than any
/// compile may). A clock bounds it too, as a small multiple of one compile: whatever a holder says
/// of itself, a caller's wait ends. In the last cases, and where the file system has no locks, the
/// caller makes its own copy without the lock.
///
/// Threads: one at a time.
class Turn {
 public:
  struct Patience {
    std::chrono::milliseconds stopped{2'000};    ///< A holder that is stopped or gone.
    std::chrono::milliseconds stage{600'000};    ///< A holder whose stage does not change.
    std::chrono::milliseconds whole{1'200'000};  ///< Any holders, one after another.
    std::chrono::seconds notice{5};              ///< Until people are told who is waited for.
  };

  /// Waits; `found` looks for the object and ends the wait when it returns true.
  static Turn take(Directory& directory, const Key& key, Reporter& reporter,
                   const std::function<bool()>& found, const Patience& patience);

  /// `found` returned true: there is nothing to make.
  bool served() const noexcept { return served_; }

  /// Another process held the key's lock at first.
  bool waited() const noexcept { return waited_; }

  /// Tells those who wait how far the work is.
  void stage(std::string_view name);

  /// Tells those who wait that there will be no object to find (a full disk): they make their own
  /// copies side by side, not one after another.
  void not_stored();

 private:
  bool last_was_not_stored() const;

  std::shared_ptr<const Fd> folder_;  ///< Outlives the lock in it.
  std::optional<FileLock> lock_;
  bool served_ = false;
  bool waited_ = false;
  std::int64_t since_unix_ms_ = 0;
};

/// Who holds a key's lock, absent when nobody does.
std::optional<Holder> holder_of(Directory& directory, const Key& key);

}  // namespace broach::cache
