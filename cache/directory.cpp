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
constexpr std::string_view kRoot = "";
constexpr std::string_view kWhat = "cache directory";

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
                       IfMissing if_missing, Trust trust, mode_t mode) {
  Fd fd(openat(parent, label.c_str(), kOpenDirectory | O_NOFOLLOW));
  if (!fd && errno == ENOENT && if_missing == IfMissing::kCreate) {
    if (mkdirat(parent, label.c_str(), mode) != 0 && errno != EEXIST) {
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
Result<void> creatable(const fs::path& path, const Reached& deepest) {
  if (faccessat(deepest.fd.get(), ".", W_OK | X_OK, AT_EACCESS) == 0) return {};
  Error error = os_error("create cache directory", path.string(), errno);
  error.message += fmt::format(" ({})", deepest.physical);
  return error;
}

}  // namespace

WalkRule Directory::rule(IfMissing if_missing) const {
  WalkRule rule;
  rule.trust = trust_;
  rule.what = kWhat;
  rule.if_missing = if_missing;
  rule.created_mode = directory_mode();
  return rule;
}

Result<std::unique_ptr<Directory>> Directory::open(fs::path path, Trust trust, Readers readers) {
  if (!path.is_absolute()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("cache directory \"{}\" is not an absolute path; give one that starts "
                             "with /",
                             path.string()),
                 ""};
  }
  path = path.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::unique_ptr<Directory> directory(new Directory(std::move(path), trust, readers));
  const auto opened = directory->root(IfMissing::kFail);
  if (opened) return directory;
  if (opened.error().code != ErrorCode::kNotFound) return opened.error();
  if (trust != Trust::kOwn) return opened.error();
  if (auto could = directory->writable(); !could) return could.error();
  return directory;
}

Result<std::shared_ptr<const Fd>> Directory::root(IfMissing if_missing) {
  const std::lock_guard lock(mutex_);
  if (const auto found = open_.find(kRoot); found != open_.end()) return found->second;
  auto fd = open_trusted_directory(path_, rule(if_missing));
  if (!fd) {
    Error refused = fd.error();
    if (refused.reason == Reason::kUnsafe) {
      refused.message += "; BROACH_CACHE_DIR names another directory";
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
  auto fd = open_folder((*parent)->get(), label, (path_ / name).string(), if_missing, trust_,
                        directory_mode());
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
  if (!fd) {
    if (fd.error().code != ErrorCode::kNotFound) return fd.error();
    const auto reached = walk(path_, rule(IfMissing::kFail));
    return reached ? creatable(path_, *reached) : reached.error();
  }
  if (faccessat((*fd)->get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return os_error("write to cache directory", path_.string(), errno);
  }
  return {};
}

Result<std::string> Directory::physical_path() {
  const auto fd = root(IfMissing::kFail);
  if (!fd) return fd.error();
  auto reached = walk(path_, rule(IfMissing::kFail));
  if (!reached) return reached.error();
  struct stat open {};
  struct stat named {};
  if (reached->whole && fstat((*fd)->get(), &open) == 0 && fstat(reached->fd.get(), &named) == 0 &&
      open.st_dev == named.st_dev && open.st_ino == named.st_ino) {
    return std::move(reached->physical);
  }
  return Error{
      ErrorCode::kDenied,
      fmt::format("another directory is in the place of cache directory {}", path_.string()), "",
      Reason::kUnsafe};
}

Filesystem Directory::filesystem() {
  const auto fd = root(IfMissing::kFail);
  if (fd) return filesystem_of((*fd)->get());
  // Not created yet: its deepest existing parent tells.
  const auto reached = walk(path_, rule(IfMissing::kFail));
  return reached ? filesystem_of(reached->fd.get()) : Filesystem{};
}

}  // namespace broach::cache
