#include "tools/rtc/guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

namespace broach::rtc {
namespace {

volatile pid_t first_parent = 0;
volatile int watched_socket = -1;

Error os_error(const char* what) {
  return Error{ErrorCode::kIo, std::string(what) + ": " + std::strerror(errno), ""};
}

// Nothing that a compiler writes is larger: no message would hold it.
constexpr rlim_t kMaxFileBytes = rlim_t{256} << 20;

// The kernel sends this when the *thread* that started us ends, which is no reason to stop. When
// the process ended, the watching thread is told by the hang-up that it waits for. Of the signals,
// this is the one that a stopped process gets.
constexpr int kParentSignal = SIGCONT;

void on_parent_signal(int) {
  if (::getppid() != first_parent) ::shutdown(watched_socket, SHUT_RDWR);
}

using Resource = decltype(RLIMIT_AS);

Result<void> lower(Resource resource, rlim_t bytes, const char* words) {
  rlimit inherited{};
  if (::getrlimit(resource, &inherited) != 0) return os_error(words);
  const rlim_t least = std::min({bytes, inherited.rlim_cur, inherited.rlim_max});
  const rlimit limit{least, least};
  if (::setrlimit(resource, &limit) != 0) return os_error(words);
  return {};
}

}  // namespace

Result<int> take_socket() {
  struct stat info {};
  if (::fstat(STDIN_FILENO, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    return Error{ErrorCode::kInvalidArgument,
                 "standard input is no socket: broach-rtc is started by the broach library", ""};
  }
  const int socket = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int empty = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (socket < 0 || empty < 0) return os_error("descriptors");
  if (::dup2(empty, STDIN_FILENO) < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return os_error("dup2");
  }
#ifdef SYS_close_range
  const auto first = static_cast<unsigned>(STDERR_FILENO + 1);
  const auto own = static_cast<unsigned>(socket);
  if (own > first) ::syscall(SYS_close_range, first, own - 1, 0);
  ::syscall(SYS_close_range, own + 1, ~0U, 0);
#endif
  return socket;
}

void end_with_parent(const std::string& scratch) {
  std::error_code ignored;
  if (!scratch.empty()) std::filesystem::remove_all(scratch, ignored);
  ::kill(0, SIGKILL);
  ::_exit(0);
}

bool die_with_parent(int socket, std::string scratch) try {
  first_parent = ::getppid();
  watched_socket = socket;
  struct sigaction action {};
  action.sa_handler = on_parent_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(kParentSignal, &action, nullptr);
  ::prctl(PR_SET_PDEATHSIG, kParentSignal);
  std::thread([socket, scratch = std::move(scratch)] {
    // Asking for no event but the hang-up leaves the requests to the main thread.
    pollfd entry{socket, POLLRDHUP, 0};
    while (::poll(&entry, 1, -1) < 0 && errno == EINTR) {
    }
    end_with_parent(scratch);
  }).detach();
  return true;
} catch (const std::exception&) {
  return false;
}

void hold(const std::string& scratch) {
  if (scratch.empty()) return;
  // Open until this process ends, and not in its children.
  const int folder = ::open(scratch.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) ::flock(folder, LOCK_EX | LOCK_NB);
}

NoNewFiles::NoNewFiles() noexcept {
  if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) return;
  // Descriptors that are open already stay in use.
  const rlimit none{0, before_.rlim_max};
  lowered_ = ::setrlimit(RLIMIT_NOFILE, &none) == 0;
}

NoNewFiles::~NoNewFiles() {
  if (lowered_) ::setrlimit(RLIMIT_NOFILE, &before_);
}

Result<void> limit_memory(std::uint64_t bytes) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // A write past the limit is then an error, for compilers too.
  ::signal(SIGXFSZ, SIG_IGN);
  if (auto lowered = lower(RLIMIT_FSIZE, kMaxFileBytes, "setrlimit(RLIMIT_FSIZE)"); !lowered) {
    return lowered;
  }
  if (bytes == 0) return {};
  return lower(RLIMIT_AS, bytes, "setrlimit(RLIMIT_AS)");
}

}  // namespace broach::rtc
