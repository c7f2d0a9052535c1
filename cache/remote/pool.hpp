#pragma once

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace broach::cache::remote {

/// Connections that wait for their next use. Whoever takes one has it alone; one that failed is
/// not put back.
///
/// Threads: any.
template <class Connection>
class Pool {
 public:
  std::optional<Connection> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::nullopt;
    std::optional<Connection> taken(std::move(idle_.back()));
    idle_.pop_back();
    return taken;
  }

  void put_back(Connection connection) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(connection));
  }

 private:
  static constexpr std::size_t kMaxIdle = 4;

  std::mutex mutex_;
  std::vector<Connection> idle_;
};

}  // namespace broach::cache::remote
