#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "cache/key.hpp"

namespace broach::cache::remote {

/// A value on its way to the remotes.
struct Upload {
  KeyRecord key;
  std::string value;
  enum class Where : std::uint8_t { kEverywhere, kWhereMissing } where = Where::kEverywhere;

  enum class Fate : std::uint8_t { kStored, kLost };

  /// Called once, on another thread, when the value was stored or given up.
  std::function<void(Fate)> ended;
};

/// Values that wait for one thread to send them, so that nobody else waits for a remote. Bounded:
/// what finds it full is turned away.
///
/// Threads: any.
class UploadQueue {
 public:
  struct Bounds {
    std::size_t uploads = 256;
    std::uint64_t bytes = std::uint64_t{64} << 20;
  };

  /// Sends one value; the token asks it to give up.
  using Send = std::function<Upload::Fate(const Upload&, const std::stop_token&)>;

  UploadQueue(const Bounds& bounds, Send send);

  ~UploadQueue() { close(); }
  UploadQueue(const UploadQueue&) = delete;
  UploadQueue& operator=(const UploadQueue&) = delete;

  /// Gives up what is being sent and all that waits; says how many had not begun.
  std::size_t close() noexcept;

  /// False when it is full, or closed: the upload is left with the caller, and `ended` uncalled.
  bool offer(Upload& upload);

  /// Waits until everything was sent; false when that takes longer.
  bool drain(std::chrono::milliseconds at_most);

 private:
  void work(const std::stop_token& stop);

  const Bounds bounds_;
  const Send send_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Upload> queue_;
  std::uint64_t bytes_ = 0;
  std::size_t sending_ = 0;
  bool closed_ = false;
  std::jthread worker_;  ///< Started by the first upload.
};

}  // namespace broach::cache::remote
