#include "cache/remote/sigpipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tests/support/catch.hpp"

namespace broach::cache::remote {

TEST_CASE("a write to what is closed ends nobody, and leaves no signal behind",
          "[cache][remote][sigpipe]") {
  struct sigaction before {};
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &standard, &before);
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  close(ends[0]);
  {
    const NoSigpipe guard;
    errno = 0;
    CHECK(write(ends[1], "x", 1) == -1);
    CHECK(errno == EPIPE);
  }
  // Had it stayed pending, it would have come as the guard ended.
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  CHECK(sigismember(&mask, SIGPIPE) == 0);
  close(ends[1]);
  sigaction(SIGPIPE, &before, nullptr);
}

}  // namespace broach::cache::remote
