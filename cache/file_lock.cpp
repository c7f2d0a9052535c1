#include "cache/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <thread>

#include "cache/folder_listing.hpp"
#include "cache/os_error.hpp"

namespace broach::cache {
namespace {

// Notes have one size, so that a reader never sees the tail of a longer one before.
constexpr std::size_t kNoteBytes = 256;

// Whether a name still leads to an open file.
Result<bool> leads_to(int folder, const std::string& name, const Fd& fd) {
  struct stat opened {};
  struct stat named {};
  if (fstat(fd.get(), &opened) != 0) return os_error("examine the lock", name, errno);
  if (fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return false;
    return os_error("examine the lock", name, errno);
  }
  return opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

std::string read_note(const Fd& fd) {
  std::array<char, kNoteBytes> note{};
  const ssize_t got = pread(fd.get(), note.data(), note.size(), 0);
  return std::string(note.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
}

int lock_now(const Fd& fd, int kind) {
  int status = 0;
  do {
    status = flock(fd.get(), kind | LOCK_NB);
  } while (status != 0 && errno == EINTR);
  return status;
}

}  // namespace

Result<std::optional<FileLock>> FileLock::try_take(int folder, const std::string& name) {
  // Again while the file that was locked has just been removed by the holder before us.
  for (int attempt = 0; attempt < 64; ++attempt) {
    Fd fd(
        openat(folder, name.c_str(), O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!fd) return os_error("open the lock", name, errno);
    if (lock_now(fd, LOCK_EX) != 0) {
      if (errno == EWOULDBLOCK) return std::optional<FileLock>{};
      return os_error("lock", name, errno);
    }
    const auto ours = leads_to(folder, name, fd);
    if (!ours) return ours.error();
    if (*ours) return std::optional<FileLock>(FileLock(folder, name, std::move(fd)));
  }
  return Error{ErrorCode::kIo, "the lock " + name + " is removed as fast as it is made", "EAGAIN"};
}

Result<std::optional<FileLock>> FileLock::take_within(int folder, const std::string& name,
                                                      std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    auto taken = try_take(folder, name);
    if (!taken || taken->has_value() || std::chrono::steady_clock::now() >= deadline) return taken;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

FileLock::~FileLock() {
  if (!fd_ || keep_file_) return;
  try {
    const auto ours = leads_to(folder_, name_, fd_);
    if (ours && *ours) (void)unlinkat(folder_, name_.c_str(), 0);
  } catch (const std::exception&) {
    // The file stays; the lock on it goes with the descriptor.
  }
}

void FileLock::write(const std::string& text) noexcept {
  std::array<char, kNoteBytes> note;
  note.fill(' ');
  text.copy(note.data(), note.size());
  (void)!pwrite(fd_.get(), note.data(), note.size(), 0);
}

std::optional<std::string> FileLock::held_text(int folder, const std::string& name) {
  const Fd fd(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd || lock_now(fd, LOCK_SH) == 0) return std::nullopt;
  return read_note(fd);
}

std::string FileLock::text() const { return read_note(fd_); }

std::size_t sweep_locks(int folder, const std::string& path) {
  const auto names = names_in(folder, path);
  if (!names) return 0;
  std::size_t removed = 0;
  for (const std::string& name : *names) {
    // Taking the lock proves that nobody holds it; letting go removes the file.
    const auto taken = FileLock::try_take(folder, name);
    if (taken && taken->has_value()) ++removed;
  }
  return removed;
}

}  // namespace broach::cache
