#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "cache/key.hpp"
#include "cache/remote/deadline.hpp"

namespace broach::cache::remote {

/// Where the processes of a fleet agree who makes a key. A lease ends by itself: what a dead holder
/// leaves blocks nobody for longer than the lease's time.
///
/// Errors:  as Remote.
/// Threads: any.
/// Source:  docs/cache_format.md ("One compile a key in a fleet").
class LeaseBoard {
 public:
  virtual ~LeaseBoard() = default;

  struct Answer {
    bool taken = false;
    std::string held_by;  ///< The holder's text, where it was not taken.
  };

  /// Takes the lease of a key if nobody has it. `text` begins with the holder's token.
  virtual Result<Answer> take(const Key& key, std::string_view text, std::chrono::milliseconds time,
                              Deadline& deadline) = 0;

  /// Writes a new text and starts the lease's time again; false when another holds it, or nobody.
  virtual Result<bool> renew(const Key& key, std::string_view token, std::string_view text,
                             std::chrono::milliseconds time, Deadline& deadline) = 0;

  /// Gives the lease up; false when another holds it, or nobody.
  virtual Result<bool> release(const Key& key, std::string_view token, Deadline& deadline) = 0;
};

}  // namespace broach::cache::remote
