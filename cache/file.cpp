#include "cache/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <random>
#include <utility>

#include <fmt/core.h>

#include "cache/folder_listing.hpp"
#include "cache/os_error.hpp"

namespace broach::cache {
namespace {

std::int64_t unix_ms(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

// No two writers may share a name, threads and machines on a network file system included.
std::string scratch_name() {
  static std::atomic<std::uint64_t> serial{0};
  std::random_device random;
  return fmt::format("{}.{}.{:08x}", getpid(), serial.fetch_add(1), random());
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

struct Scratch {
  Fd fd;
  std::string name;
};

Result<Scratch> create_scratch(int folder, const std::string& path, mode_t mode) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    Scratch scratch{Fd(), scratch_name()};
    scratch.fd = Fd(openat(folder, scratch.name.c_str(),
                           O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!scratch.fd) {
      if (errno == EEXIST) continue;
      return os_error("create a temporary file for", path, errno);
    }
    // A sweep between creation and lock may have taken the file for a leftover: then once more.
    // A file system without locks is swept by age alone.
    if (flock(scratch.fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    struct stat opened {};
    struct stat named {};
    if (fstat(scratch.fd.get(), &opened) != 0) {
      const int error = errno;
      (void)unlinkat(folder, scratch.name.c_str(), 0);
      return os_error("examine a temporary file for", path, error);
    }
    if (fstatat(folder, scratch.name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        same_file(opened, named)) {
      return scratch;
    }
  }
  return Error{ErrorCode::kIo, "cannot create a temporary file for " + path + ": names are taken",
               "EEXIST"};
}

}  // namespace

std::int64_t now_unix_ms() noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

Result<OpenFile> open_file(int folder, const std::string& name, const std::string& path,
                           Trust trust) {
  OpenFile file;
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  // The time of the last use is ours to set: a listing or a check that reads is none. Only a file's
  // owner may ask for that.
  file.fd = Fd(openat(folder, name.c_str(), kFlags | O_NOATIME));
  if (!file.fd && errno == EPERM) file.fd = Fd(openat(folder, name.c_str(), kFlags));
  if (!file.fd) {
    if (errno == ELOOP) {
      return Error{ErrorCode::kDamaged, path + " is a symbolic link, which is not followed", ""};
    }
    if (errno == ENXIO) return Error{ErrorCode::kDamaged, path + " is not a regular file", ""};
    return os_error("open", path, errno);
  }
  struct stat status {};
  if (fstat(file.fd.get(), &status) != 0) return os_error("examine", path, errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kDamaged, path + " is not a regular file", ""};
  }
  // A file that root left in our own directory is as good as ours: root can do anything anyway.
  const bool root_in_ours = trust == Trust::kOwn && status.st_uid == 0;
  const Trust needed = root_in_ours ? Trust::kInstalled : trust;
  if (auto fine = check_owner_and_mode(path, status.st_uid, status.st_mode, needed); !fine) {
    return fine.error();
  }
  file.bytes = static_cast<std::uint64_t>(status.st_size);
  file.device = status.st_dev;
  file.inode = status.st_ino;
  file.used_unix_ms = unix_ms(status.st_atim);
  return file;
}

Result<std::vector<std::byte>> read_bytes(const Fd& file, std::uint64_t offset, std::uint64_t count,
                                          const std::string& path) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = pread(file.get(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error("read", path, errno);
    if (got == 0) {
      return Error{ErrorCode::kDamaged,
                   fmt::format("{} ends after {} of {} bytes", path, offset + done, offset + count),
                   ""};
    }
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

Result<void> write_bytes(const Fd& file, std::span<const std::byte> bytes,
                         const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = write(file.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return os_error("write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> publish_file(int scratch_folder, int folder, const std::string& name,
                          std::span<const std::byte> bytes, const std::string& path, mode_t mode) {
  auto scratch = create_scratch(scratch_folder, path, mode);
  if (!scratch) return scratch.error();
  auto written = write_bytes(scratch->fd, bytes, path);
  if (written && fsync(scratch->fd.get()) != 0) written = os_error("sync", path, errno);
  if (written && renameat(scratch_folder, scratch->name.c_str(), folder, name.c_str()) != 0) {
    written = os_error("rename a temporary file to", path, errno);
  }
  if (!written) {
    unlinkat(scratch_folder, scratch->name.c_str(), 0);
    return written;
  }
  // Some file systems cannot sync a folder and say EINVAL: the name is as durable as they make it.
  if (fsync(folder) != 0 && errno != EINVAL) return os_error("sync the folder of", path, errno);
  return {};
}

std::size_t sweep_scratch(int scratch_folder, const std::string& path) {
  constexpr std::int64_t kLeftoverMs = std::int64_t{24} * 3600 * 1000;
  const auto names = names_in(scratch_folder, path);
  if (!names) return 0;
  std::size_t removed = 0;
  for (const std::string& name : *names) {
    const Fd fd(openat(scratch_folder, name.c_str(),
                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!fd) continue;
    struct stat status {};
    if (fstat(fd.get(), &status) != 0) continue;
    bool leftover = flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
    if (!leftover && errno != EWOULDBLOCK) {
      leftover = now_unix_ms() - unix_ms(status.st_mtim) > kLeftoverMs;
    }
    if (leftover && unlinkat(scratch_folder, name.c_str(), 0) == 0) ++removed;
  }
  return removed;
}

}  // namespace broach::cache
