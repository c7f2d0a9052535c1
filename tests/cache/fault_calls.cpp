#include "tests/cache/fault_calls.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

namespace broach::cache::test {
namespace {

// One thread at a time arms and calls: the fault worker has no other.
Fault armed;
bool active = false;
int seen = 0;
int injected = 0;
std::int64_t clock_off_s = 0;

bool fails(std::string_view call) {
  if (!active || call != armed.call) return false;
  ++seen;
  const bool hit = armed.span == Fault::Span::kOnce ? seen == armed.nth : seen >= armed.nth;
  if (!hit) return false;
  ++injected;
  if (armed.meanwhile) {
    active = false;  // What it does is no further trial.
    armed.meanwhile();
    active = true;
    return false;
  }
  errno = armed.error;
  return true;
}

/// Whether the call that just failed is to be done all the same; keeps the failure's errno.
template <class Call>
void do_anyway(Call call) {
  if (armed.effect == Fault::Effect::kNone) return;
  active = false;  // What it does inside is no further trial.
  call();
  active = true;
  errno = armed.error;
}

}  // namespace

void arm(const Fault& fault) {
  armed = fault;
  seen = 0;
  injected = 0;
  active = true;
}

int disarm() {
  active = false;
  return injected;
}

void set_clock_off(std::int64_t seconds) { clock_off_s = seconds; }

}  // namespace broach::cache::test

// The next definition of a function after this program's own: the C library's or a sanitizer's.
#define BROACH_REAL(name) \
  static const auto real = reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name))

#define BROACH_FAULTY(label, result, name, parameters, arguments, throws)           \
  extern "C" __attribute__((visibility("default"))) result name parameters throws { \
    BROACH_REAL(name);                                                              \
    if (broach::cache::test::fails(label)) {                                        \
      broach::cache::test::do_anyway([&] { (void)!real arguments; });               \
      return -1;                                                                    \
    }                                                                               \
    return real arguments;                                                          \
  }

#define BROACH_FAULTY_OPEN(label, name)                                                          \
  extern "C" __attribute__((visibility("default"))) int name(const char* path, int flags, ...) { \
    BROACH_REAL(name);                                                                           \
    va_list more;                                                                                \
    va_start(more, flags);                                                                       \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;                       \
    va_end(more);                                                                                \
    if (broach::cache::test::fails(label)) return -1;                                            \
    return real(path, flags, mode);                                                              \
  }

#define BROACH_FAULTY_OPENAT(label, name)                                                         \
  extern "C" __attribute__((visibility("default"))) int name(int at, const char* path, int flags, \
                                                             ...) {                               \
    BROACH_REAL(name);                                                                            \
    va_list more;                                                                                 \
    va_start(more, flags);                                                                        \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;                        \
    va_end(more);                                                                                 \
    if (broach::cache::test::fails(label)) return -1;                                             \
    return real(at, path, flags, mode);                                                           \
  }

BROACH_FAULTY_OPEN("open", open)
BROACH_FAULTY_OPEN("open", open64)
BROACH_FAULTY_OPENAT("openat", openat)
BROACH_FAULTY_OPENAT("openat", openat64)
BROACH_FAULTY("mkdir", int, mkdir, (const char* path, mode_t mode), (path, mode), noexcept)
BROACH_FAULTY("mkdirat", int, mkdirat, (int at, const char* path, mode_t mode), (at, path, mode),
              noexcept)
BROACH_FAULTY("read", ssize_t, read, (int fd, void* to, size_t bytes), (fd, to, bytes), )
BROACH_FAULTY("pread", ssize_t, pread, (int fd, void* to, size_t bytes, off_t at),
              (fd, to, bytes, at), )
BROACH_FAULTY("pread", ssize_t, pread64, (int fd, void* to, size_t bytes, off64_t at),
              (fd, to, bytes, at), )
BROACH_FAULTY("write", ssize_t, write, (int fd, const void* from, size_t bytes),
              (fd, from, bytes), )
BROACH_FAULTY("pwrite", ssize_t, pwrite, (int fd, const void* from, size_t bytes, off_t at),
              (fd, from, bytes, at), )
BROACH_FAULTY("pwrite", ssize_t, pwrite64, (int fd, const void* from, size_t bytes, off64_t at),
              (fd, from, bytes, at), )
BROACH_FAULTY("fsync", int, fsync, (int fd), (fd), )
BROACH_FAULTY("fdatasync", int, fdatasync, (int fd), (fd), )
BROACH_FAULTY("rename", int, rename, (const char* from, const char* to), (from, to), noexcept)
BROACH_FAULTY("renameat", int, renameat, (int from_at, const char* from, int to_at, const char* to),
              (from_at, from, to_at, to), noexcept)
BROACH_FAULTY("unlink", int, unlink, (const char* path), (path), noexcept)
BROACH_FAULTY("unlinkat", int, unlinkat, (int at, const char* path, int flags), (at, path, flags),
              noexcept)
BROACH_FAULTY("flock", int, flock, (int fd, int operation), (fd, operation), noexcept)
BROACH_FAULTY("fstat", int, fstat, (int fd, struct stat* to), (fd, to), noexcept)
BROACH_FAULTY("fstat", int, fstat64, (int fd, struct stat64* to), (fd, to), noexcept)
BROACH_FAULTY("stat", int, stat, (const char* path, struct stat* to), (path, to), noexcept)
BROACH_FAULTY("stat", int, stat64, (const char* path, struct stat64* to), (path, to), noexcept)
BROACH_FAULTY("fstatat", int, fstatat, (int at, const char* path, struct stat* to, int flags),
              (at, path, to, flags), noexcept)
BROACH_FAULTY("futimens", int, futimens, (int fd, const struct timespec* times), (fd, times),
              noexcept)
BROACH_FAULTY("fchmodat", int, fchmodat, (int at, const char* path, mode_t mode, int flags),
              (at, path, mode, flags), noexcept)
BROACH_FAULTY("ftruncate", int, ftruncate, (int fd, off_t bytes), (fd, bytes), noexcept)
BROACH_FAULTY("ftruncate", int, ftruncate64, (int fd, off64_t bytes), (fd, bytes), noexcept)
BROACH_FAULTY("faccessat", int, faccessat, (int at, const char* path, int mode, int flags),
              (at, path, mode, flags), noexcept)

BROACH_FAULTY("socket", int, socket, (int domain, int type, int protocol), (domain, type, protocol),
              noexcept)
BROACH_FAULTY("connect", int, connect, (int fd, const struct sockaddr* to, socklen_t bytes),
              (fd, to, bytes), )
BROACH_FAULTY("poll", int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms),
              (fds, count, timeout_ms), )
BROACH_FAULTY("recv", ssize_t, recv, (int fd, void* to, size_t bytes, int flags),
              (fd, to, bytes, flags), )
BROACH_FAULTY("send", ssize_t, send, (int fd, const void* from, size_t bytes, int flags),
              (fd, from, bytes, flags), )
BROACH_FAULTY("getsockopt", int, getsockopt,
              (int fd, int level, int option, void* to, socklen_t* bytes),
              (fd, level, option, to, bytes), noexcept)
BROACH_FAULTY("setsockopt", int, setsockopt,
              (int fd, int level, int option, const void* from, socklen_t bytes),
              (fd, level, option, from, bytes), noexcept)

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                                    struct timespec* to) noexcept {
  BROACH_REAL(clock_gettime);
  const int status = real(clock, to);
  if (clock == CLOCK_REALTIME) to->tv_sec += broach::cache::test::clock_off_s;
  return status;
}

extern "C" __attribute__((visibility("default"))) DIR* fdopendir(int fd) noexcept {
  BROACH_REAL(fdopendir);
  if (broach::cache::test::fails("fdopendir")) return nullptr;
  return real(fd);
}

extern "C" __attribute__((visibility("default"))) dirent* readdir(DIR* stream) {
  BROACH_REAL(readdir);
  if (broach::cache::test::fails("readdir")) return nullptr;
  return real(stream);
}

// Its third argument is a number or a pointer, by the command: a pointer's room holds either.
#define BROACH_FAULTY_FCNTL(name)                                                        \
  extern "C" __attribute__((visibility("default"))) int name(int fd, int command, ...) { \
    BROACH_REAL(name);                                                                   \
    va_list more;                                                                        \
    va_start(more, command);                                                             \
    void* const argument = va_arg(more, void*);                                          \
    va_end(more);                                                                        \
    if (broach::cache::test::fails("fcntl")) return -1;                                  \
    return real(fd, command, argument);                                                  \
  }

BROACH_FAULTY_FCNTL(fcntl)
BROACH_FAULTY_FCNTL(fcntl64)
