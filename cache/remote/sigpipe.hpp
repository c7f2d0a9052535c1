#pragma once

#include <signal.h>

#include <ctime>

namespace broach::cache::remote {

/// Keeps SIGPIPE from this thread while it talks to a peer: some versions of TLS libraries write to
/// a closed socket without MSG_NOSIGNAL, and the signal would end the program that embeds us.
class NoSigpipe {
 public:
  NoSigpipe() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    was_pending_ = pending();
  }
  ~NoSigpipe() {
    // One that came meanwhile is ours, and is taken; one that was there before is not.
    if (!was_pending_ && pending()) {
      const timespec now{};
      (void)sigtimedwait(&pipe_, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  static bool pending() noexcept {
    sigset_t set;
    sigemptyset(&set);
    return sigpending(&set) == 0 && sigismember(&set, SIGPIPE) == 1;
  }

  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_;
};

}  // namespace broach::cache::remote
