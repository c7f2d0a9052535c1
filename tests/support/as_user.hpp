#pragma once

#include <grp.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace broach::test {

/// Runs a body in a child process that `enter` has prepared; true when both returned true. A child
/// that crashes counts as false.
inline bool in_child(const std::function<bool()>& enter, const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(enter() && body() ? 0 : 1);
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

/// The same as another user, without root's rights. Needs root.
inline bool as_user(uid_t user, const std::function<bool()>& body) {
  return in_child(
      [user] {
        return setgroups(0, nullptr) == 0 && setresgid(user, user, user) == 0 &&
               setresuid(user, user, user) == 0;
      },
      body);
}

}  // namespace broach::test
