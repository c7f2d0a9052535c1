#include "cache/remote/upload_queue.hpp"

#include <exception>
#include <utility>

namespace broach::cache::remote {

UploadQueue::UploadQueue(const Bounds& bounds, Send send)
    : bounds_(bounds), send_(std::move(send)) {}

std::size_t UploadQueue::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  if (worker_.joinable()) {
    worker_.request_stop();
    worker_.join();
  }
  const std::size_t left = queue_.size();
  for (Upload& upload : queue_) {
    if (upload.ended) upload.ended(Upload::Fate::kLost);
  }
  queue_.clear();
  return left;
}

bool UploadQueue::offer(Upload& upload) {
  const std::uint64_t bytes = upload.value.size();
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || queue_.size() >= bounds_.uploads || bytes > bounds_.bytes - bytes_) return false;
    if (!worker_.joinable()) {
      worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    }
    bytes_ += bytes;
    queue_.push_back(std::move(upload));
  }
  changed_.notify_all();
  return true;
}

void UploadQueue::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !queue_.empty(); }) && !stop.stop_requested()) {
    Upload upload = std::move(queue_.front());
    queue_.pop_front();
    ++sending_;
    lock.unlock();
    auto fate = Upload::Fate::kLost;
    try {
      fate = send_(upload, stop);
    } catch (const std::exception&) {
      // No memory for it: as good as a remote that does not answer.
    }
    if (upload.ended) upload.ended(fate);
    lock.lock();
    --sending_;
    bytes_ -= upload.value.size();
    changed_.notify_all();
  }
}

bool UploadQueue::drain(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [this] { return queue_.empty() && sending_ == 0; });
}

}  // namespace broach::cache::remote
