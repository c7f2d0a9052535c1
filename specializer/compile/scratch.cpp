#include "specializer/compile/scratch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "specializer/compile/unique_fd.hpp"

namespace broach::specializer {
namespace {

namespace fs = std::filesystem;
using rtc::UniqueFd;

constexpr std::string_view kPrefix = "broach-scratch-";

// What a compile of the largest kernel leaves in it at a time, several times over.
constexpr std::uint64_t kRoomBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kRoomFiles = 64;

constexpr std::int64_t kLeftAfterS = 600;

// A directory that others fill, as /tmp, costs no more than this.
constexpr std::size_t kMostToLookAt = 10'000;

bool has_room(const fs::path& parent) {
  struct statvfs room {};
  if (::statvfs(parent.c_str(), &room) != 0) return false;
  const std::uint64_t bytes = std::uint64_t{room.f_bavail} * room.f_frsize;
  // File systems that make inodes as they need them state none.
  return bytes >= kRoomBytes && (room.f_files == 0 || room.f_favail >= kRoomFiles);
}

fs::path made_in(const fs::path& parent) {
  std::string path = (parent / kPrefix).string() + "XXXXXX";
  return ::mkdtemp(path.data()) == nullptr ? fs::path() : fs::path(path);
}

bool is_left(int folder, const char* name, std::int64_t age_s) {
  const UniqueFd fd(::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || info.st_uid != ::geteuid()) return false;
  if (std::time(nullptr) - info.st_mtime < age_s) return false;
  return ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
}

void sweep_once(const fs::path& parent) {
  static std::mutex mutex;
  static std::set<fs::path> swept;
  {
    const std::lock_guard lock(mutex);
    if (!swept.insert(parent).second) return;
  }
  sweep_scratch(parent, kLeftAfterS);
}

}  // namespace

Result<Scratch> Scratch::create(std::span<const fs::path> parents) {
  Scratch scratch;
  std::string reasons;
  for (const bool demanding : {true, false}) {
    for (const fs::path& parent : parents) {
      if (has_room(parent) != demanding) continue;
      sweep_once(parent);
      scratch.path_ = made_in(parent);
      if (!scratch.path_.empty()) return scratch;
      reasons += (reasons.empty() ? "" : "; ") + parent.string() + ": " + std::strerror(errno);
    }
  }
  return Error{ErrorCode::kIo,
               "no private directory for a compiler's temporary files can be made (" + reasons +
                   "); name one that can be written (TMPDIR)",
               ""};
}

Scratch::~Scratch() {
  if (path_.empty()) return;
  try {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  } catch (const std::exception&) {
    // Without memory it stays, until it is swept.
  }
}

Scratch::Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, fs::path())) {}

Scratch& Scratch::operator=(Scratch&& other) noexcept {
  path_.swap(other.path_);
  return *this;
}

std::size_t sweep_scratch(const fs::path& parent, std::int64_t age_s) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(parent.c_str()), &::closedir);
  if (folder == nullptr) return 0;
  std::size_t removed = 0;
  std::vector<std::string> left;
  std::size_t looked_at = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (++looked_at > kMostToLookAt) break;
    const std::string_view name = entry->d_name;
    if (name.starts_with(kPrefix) && is_left(::dirfd(folder.get()), entry->d_name, age_s)) {
      left.emplace_back(name);
    }
  }
  for (const std::string& name : left) {
    std::error_code error;
    fs::remove_all(parent / name, error);
    if (!error) ++removed;
  }
  return removed;
}

}  // namespace broach::specializer
