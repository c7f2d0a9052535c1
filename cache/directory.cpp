#include "cache/directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "cache/os_error.hpp"

namespace broach::cache {
namespace {

namespace fs = std::filesystem;

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr mode_t kDirectoryMode = 0700;
constexpr std::string_view kRoot = "";
constexpr std::string_view kWhat = "cache directory";

bool ours(uid_t owner) { return owner == geteuid() || owner == 0; }

// A symbolic link in the path's last place is followed only when we or root made it: a link in a
// shared directory such as /tmp could lead anywhere.
Result<Fd> open_path(const fs::path& path, std::string_view what, Trust trust) {
  Fd fd(::open(path.c_str(), kOpenDirectory | O_NOFOLLOW));
  if (fd) return fd;
  const int error = errno;
  struct stat link {};
  if ((error == ELOOP || error == ENOTDIR) && lstat(path.c_str(), &link) == 0 &&
      S_ISLNK(link.st_mode)) {
    if (!ours(link.st_uid) && trust != Trust::kSigned) {
      return Error{ErrorCode::kDenied,
                   fmt::format("{} {} is a symbolic link made by user {}, who could lead it to "
                               "planted code",
                               what, path.string(), link.st_uid),
                   std::string(kUnsafe)};
    }
    fd = Fd(::open(path.c_str(), kOpenDirectory));
    if (fd) return fd;
  }
  return os_error(fmt::format("open {}", what), path.string(), errno);
}

Result<Fd> checked(Fd fd, const std::string& path, Trust trust) {
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return os_error("examine", path, errno);
  if (auto fine = check_owner_and_mode(path, status.st_uid, status.st_mode, trust); !fine) {
    return fine.error();
  }
  return fd;
}

// Opens one folder inside a checked directory.
Result<Fd> open_folder(int parent, const std::string& label, const std::string& path,
                       IfMissing if_missing, Trust trust) {
  Fd fd(openat(parent, label.c_str(), kOpenDirectory | O_NOFOLLOW));
  if (!fd && errno == ENOENT && if_missing == IfMissing::kCreate) {
    if (mkdirat(parent, label.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
      return os_error("create", path, errno);
    }
    fd = Fd(openat(parent, label.c_str(), kOpenDirectory | O_NOFOLLOW));
  }
  if (!fd) {
    const int number = errno;
    Error error = os_error("open", path, number);
    if (number == ENOTDIR || number == ELOOP) {
      error.message += " (a link or a file is in the folder's place and is not followed)";
    }
    return error;
  }
  return checked(std::move(fd), path, trust);
}

// Says whether the deepest directory that exists would let us create the rest.
Result<void> creatable(const fs::path& path) {
  fs::path parent = path.parent_path();
  struct stat status {};
  while (stat(parent.c_str(), &status) != 0) {
    if (errno != ENOENT || parent == parent.root_path()) {
      return os_error("create cache directory", path.string(), errno);
    }
    parent = parent.parent_path();
  }
  const bool allowed = S_ISDIR(status.st_mode);
  if (!allowed) errno = ENOTDIR;
  if (!allowed || faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    Error error = os_error("create cache directory", path.string(), errno);
    error.message += fmt::format(" ({})", parent.string());
    return error;
  }
  return {};
}

Result<void> create(const fs::path& path) {
  fs::path built;
  for (const fs::path& part : path) {
    built /= part;
    if (mkdir(built.c_str(), kDirectoryMode) == 0 || errno == EEXIST) continue;
    // A parent that exists may refuse mkdir with another error (EROFS, EACCES) before EEXIST.
    const int error = errno;
    struct stat status {};
    if (stat(built.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) continue;
    return os_error("create cache directory", built.string(), error);
  }
  return {};
}

}  // namespace

Result<void> check_owner_and_mode(std::string_view path, std::uint32_t owner, std::uint32_t mode,
                                  Trust trust) {
  if (trust == Trust::kSigned) return {};
  const uid_t self = geteuid();
  if (owner != self && !(trust == Trust::kInstalled && owner == 0)) {
    return Error{ErrorCode::kDenied,
                 fmt::format("{} is owned by user {}, not by user {}: its owner could plant code",
                             path, owner, self),
                 std::string(kUnsafe)};
  }
  if ((mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error{ErrorCode::kDenied,
                 fmt::format("{} has mode {:04o}: {} could plant code; run `chmod go-w {}`", path,
                             mode & 07777U, (mode & S_IWOTH) != 0 ? "anyone" : "its group", path),
                 std::string(kUnsafe)};
  }
  return {};
}

Result<Fd> open_checked_directory(const fs::path& path, std::string_view what, Trust trust) {
  auto fd = open_path(path, what, trust);
  if (!fd) return fd;
  auto safe = checked(std::move(*fd), path.string(), trust);
  if (safe) return safe;
  Error refused = safe.error();
  refused.message = fmt::format("{} {}", what, refused.message);
  return refused;
}

Result<std::unique_ptr<Directory>> Directory::open(fs::path path, Trust trust) {
  if (!path.is_absolute()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("cache directory \"{}\" is not an absolute path; give one that starts "
                             "with /",
                             path.string()),
                 ""};
  }
  path = path.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::unique_ptr<Directory> directory(new Directory(std::move(path), trust));
  const auto opened = directory->root(IfMissing::kFail);
  if (opened) return directory;
  if (opened.error().code != ErrorCode::kNotFound) return opened.error();
  if (trust != Trust::kOwn) return opened.error();
  if (auto could = creatable(directory->path_); !could) return could.error();
  return directory;
}

Result<std::shared_ptr<const Fd>> Directory::root(IfMissing if_missing) {
  const std::lock_guard lock(mutex_);
  if (const auto found = open_.find(kRoot); found != open_.end()) return found->second;
  auto fd = open_checked_directory(path_, kWhat, trust_);
  if (!fd && fd.error().code == ErrorCode::kNotFound && if_missing == IfMissing::kCreate) {
    if (auto made = create(path_); !made) return made.error();
    fd = open_checked_directory(path_, kWhat, trust_);
  }
  if (!fd) {
    Error refused = fd.error();
    if (refused.detail == kUnsafe) {
      refused.message += ", or name another directory (BROACH_CACHE_DIR)";
    }
    return refused;
  }
  auto shared = std::make_shared<const Fd>(std::move(*fd));
  open_.emplace(kRoot, shared);
  return shared;
}

Result<std::shared_ptr<const Fd>> Directory::folder(std::string_view name, IfMissing if_missing) {
  const std::size_t slash = name.rfind('/');
  const bool nested = slash != std::string_view::npos;
  if (!nested) {
    const std::lock_guard lock(mutex_);
    if (const auto found = open_.find(name); found != open_.end()) return found->second;
  }
  const auto parent = nested ? folder(name.substr(0, slash), if_missing) : root(if_missing);
  if (!parent) return parent.error();
  const std::string label(nested ? name.substr(slash + 1) : name);
  auto fd = open_folder((*parent)->get(), label, (path_ / name).string(), if_missing, trust_);
  if (!fd) return fd.error();
  auto shared = std::make_shared<const Fd>(std::move(*fd));
  // Only the few folders at the top are kept open: there are 256 below objects/.
  if (nested) return shared;
  const std::lock_guard lock(mutex_);
  open_.emplace(label, shared);
  return shared;
}

void Directory::refresh() {
  const std::lock_guard lock(mutex_);
  open_.clear();
}

Result<void> Directory::writable() {
  const auto fd = root(IfMissing::kFail);
  if (!fd) return fd.error().code == ErrorCode::kNotFound ? creatable(path_) : fd.error();
  if (faccessat((*fd)->get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return os_error("write to cache directory", path_.string(), errno);
  }
  return {};
}

Filesystem Directory::filesystem() {
  const auto fd = root(IfMissing::kFail);
  if (fd) return filesystem_of((*fd)->get());
  // Not created yet: its deepest existing parent tells.
  for (fs::path parent = path_.parent_path(); !parent.empty(); parent = parent.parent_path()) {
    const Fd existing(::open(parent.c_str(), O_PATH | O_CLOEXEC));
    if (existing) return filesystem_of(existing.get());
    if (parent == parent.root_path()) break;
  }
  return {};
}

}  // namespace broach::cache
