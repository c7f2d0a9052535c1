#include "cache/trusted_path.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "cache/os_error.hpp"

namespace broach::cache {
namespace {

namespace fs = std::filesystem;

// As many as the kernel follows in one path.
constexpr int kMaxLinks = 40;
constexpr std::size_t kMaxTargetBytes = 4096;

// O_DIRECTORY makes an automounter mount; without it O_PATH would stop before the mount.
constexpr int kStep = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Error unsafe(std::string message) {
  return Error{ErrorCode::kDenied, std::move(message), "", Reason::kUnsafe};
}

// A short file of /proc; empty where it cannot be read.
std::string proc_text(const char* path) {
  const Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 256> text{};
  const ssize_t got = fd ? read(fd.get(), text.data(), text.size()) : 0;
  return std::string(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
}

uid_t overflow_uid() {
  constexpr uid_t kUsual = 65534;
  const std::string text = proc_text("/proc/sys/kernel/overflowuid");
  return text.empty() ? kUsual : static_cast<uid_t>(std::strtoul(text.c_str(), nullptr, 10));
}

bool maps_every_user_to_itself() {
  const std::string map = proc_text("/proc/self/uid_map");
  unsigned long inside = 1;
  unsigned long outside = 1;
  unsigned long count = 0;
  return std::sscanf(map.c_str(), "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 &&
         outside == 0 && count == 4294967295UL;
}

// What lies at the end of a walk.
Result<void> check_thing(std::string_view path, const struct stat& status, const WalkRule& rule) {
  const bool also = rule.also == status.st_uid;
  auto fine = check_owner_and_mode(path, also ? 0 : status.st_uid, status.st_mode,
                                   also ? Trust::kInstalled : rule.trust);
  if (fine) return fine;
  return unsafe(fmt::format("{} {}", rule.what, fine.error().message));
}

class Walker {
 public:
  explicit Walker(const WalkRule& rule, std::string_view asked) : rule_(rule), asked_(asked) {}

  /// Goes as far as directories exist, or are created. A part that is no directory stops the walk.
  Result<void> go(const fs::path& path) {
    push(path.string());
    if (auto there = start(); !there) return there;
    while (!left_.empty() && !stopped_) {
      name_ = std::move(left_.back());
      left_.pop_back();
      if (auto done = step(); !done) return done;
    }
    return stopped_ ? Result<void>() : check_last();
  }

  /// Where the walk stopped, with `name` the part that stopped it.
  enum class Stop : std::uint8_t { kNot, kMissing, kNotDirectory };
  Stop stopped() const noexcept { return stopped_ ? why_ : Stop::kNot; }
  bool at_last() const noexcept { return left_.empty(); }
  const std::string& name() const noexcept { return name_; }

  Fd& here() noexcept { return here_; }
  const std::string& physical() const noexcept { return physical_; }

 private:
  // Parts are taken off the end.
  void push(std::string_view path) {
    std::vector<std::string> parts;
    while (!path.empty()) {
      const std::string_view part = path.substr(0, path.find('/'));
      path.remove_prefix(std::min(path.size(), part.size() + 1));
      if (!part.empty() && part != ".") parts.emplace_back(part);
    }
    left_.insert(left_.end(), parts.rbegin(), parts.rend());
  }

  Result<void> start() {
    here_ = Fd(::open("/", kStep));
    physical_.assign(1, '/');
    if (!here_) return os_error(fmt::format("open {}", rule_.what), asked_, errno);
    return check_here();
  }

  Result<void> step() {
    if (name_ == "..") {
      Fd up(openat(here_.get(), "..", kStep));
      if (!up) return failed(errno);
      here_ = std::move(up);
      physical_ = fs::path(physical_).parent_path().string();
      return check_here();
    }
    Fd next(openat(here_.get(), name_.c_str(), kStep));
    if (!next && errno == ENOENT && rule_.if_missing == IfMissing::kCreate) {
      if (mkdirat(here_.get(), name_.c_str(), rule_.created_mode) != 0 && errno != EEXIST) {
        Error error = os_error(fmt::format("create {}", rule_.what), asked_, errno);
        error.message += fmt::format(" ({})", physical_);
        return error;
      }
      next = Fd(openat(here_.get(), name_.c_str(), kStep));
    }
    if (!next && errno == ENOENT) return stop(Stop::kMissing);
    if (!next && (errno == ELOOP || errno == ENOTDIR)) return no_directory();
    if (!next) return failed(errno);
    here_ = std::move(next);
    physical_ = fs::path(physical_) / name_;
    return check_here();
  }

  Result<void> no_directory() {
    const Fd thing(openat(here_.get(), name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!thing || fstat(thing.get(), &status) != 0) return failed(errno);
    if (!S_ISLNK(status.st_mode)) return stop(Stop::kNotDirectory);
    if (rule_.trust != Trust::kSigned && !trusted(status.st_uid)) {
      return unsafe(
          fmt::format("{} {}: {} is a symbolic link made by user {}, who could lead it to "
                      "planted code",
                      rule_.what, asked_, (fs::path(physical_) / name_).string(), status.st_uid));
    }
    if (++links_ > kMaxLinks) return failed(ELOOP);
    std::array<char, kMaxTargetBytes> target{};
    const ssize_t length = readlinkat(thing.get(), "", target.data(), target.size());
    if (length < 0) return failed(errno);
    const std::string_view to(target.data(), static_cast<std::size_t>(length));
    push(to);
    return to.starts_with('/') ? start() : Result<void>();
  }

  bool trusted(uid_t owner) const {
    if (rule_.also == owner) return true;
    return (owner == 0 || owner == geteuid()) && !stands_for_strangers(owner);
  }

  // The last directory has a rule of its own.
  Result<void> check_here() const {
    if (rule_.trust == Trust::kSigned || left_.empty()) return {};
    struct stat status {};
    if (fstat(here_.get(), &status) != 0) {
      return os_error(fmt::format("examine {}", rule_.what), physical_, errno);
    }
    // Whoever can change / has the program and its libraries already.
    if (!trusted(status.st_uid) && !(physical_ == "/" && stands_for_strangers(status.st_uid))) {
      return unsafe(
          fmt::format("{} {}: {} on the way to it is owned by user {}{}, who could put planted "
                      "code in its place",
                      rule_.what, asked_, physical_, status.st_uid, namespace_words(status)));
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0) {
      return unsafe(fmt::format(
          "{} {}: {} on the way to it has mode {:04o}: {} could put planted code in its place; run "
          "`chmod go-w {}`",
          rule_.what, asked_, physical_, status.st_mode & 07777U,
          (status.st_mode & S_IWOTH) != 0 ? "anyone" : "its group", physical_));
    }
    return {};
  }

  Result<void> check_last() const {
    struct stat status {};
    if (fstat(here_.get(), &status) != 0) {
      return os_error(fmt::format("examine {}", rule_.what), physical_, errno);
    }
    return check_thing(asked_, status, rule_);
  }

  static std::string_view namespace_words(const struct stat& status) {
    return stands_for_strangers(status.st_uid)
               ? ", which in this user namespace stands for any user outside of it"
               : "";
  }

  Result<void> failed(int number) const {
    Error error = os_error(fmt::format("open {}", rule_.what), asked_, number);
    if (!left_.empty()) {
      error.message += fmt::format(" ({})", (fs::path(physical_) / name_).string());
    }
    return error;
  }

  Result<void> stop(Stop why) {
    stopped_ = true;
    why_ = why;
    return {};
  }

  const WalkRule& rule_;
  std::string_view asked_;
  std::vector<std::string> left_;
  std::string name_;
  Fd here_;
  std::string physical_;
  int links_ = 0;
  bool stopped_ = false;
  Stop why_ = Stop::kNot;
};

Result<fs::path> from_root(const fs::path& path, std::string_view what) {
  if (path.is_absolute()) return path;
  std::error_code failed;
  fs::path absolute = path.empty() ? path : fs::absolute(path, failed);
  if (!path.empty() && !failed) return absolute;
  return os_error(fmt::format("find {}", what), path.string(), ENOENT);
}

}  // namespace

bool stands_for_strangers(std::uint32_t owner) {
  static const uid_t overflow = overflow_uid();
  // Asked anew each time: a process can enter a user namespace. Few owners get here.
  return owner == overflow && !maps_every_user_to_itself();
}

Result<void> check_owner_and_mode(std::string_view path, std::uint32_t owner, std::uint32_t mode,
                                  Trust trust) {
  if (trust == Trust::kSigned) return {};
  const uid_t self = geteuid();
  if (owner != self && !(trust == Trust::kInstalled && owner == 0)) {
    return unsafe(fmt::format("{} is owned by user {}, not by user {}: its owner could plant code",
                              path, owner, self));
  }
  if (stands_for_strangers(owner)) {
    return unsafe(
        fmt::format("{} is owned by user {}, which in this user namespace stands for any user "
                    "outside of it: its owner could plant code",
                    path, owner));
  }
  if ((mode & (S_IWGRP | S_IWOTH)) != 0) {
    return unsafe(fmt::format("{} has mode {:04o}: {} could plant code; run `chmod go-w {}`", path,
                              mode & 07777U, (mode & S_IWOTH) != 0 ? "anyone" : "its group", path));
  }
  return {};
}

Result<Reached> walk(const fs::path& path, const WalkRule& rule) {
  const std::string asked = path.string();
  if (!path.is_absolute()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} \"{}\" is not an absolute path; give one that starts with /",
                             rule.what, asked),
                 ""};
  }
  Walker walker(rule, asked);
  if (auto gone = walker.go(path); !gone) return gone.error();
  if (walker.stopped() == Walker::Stop::kNotDirectory) {
    return os_error(fmt::format("open {}", rule.what), asked, ENOTDIR);
  }
  const bool whole = walker.stopped() == Walker::Stop::kNot;
  return Reached{std::move(walker.here()), walker.physical(), whole};
}

Result<Fd> open_trusted_directory(const fs::path& path, const WalkRule& rule) {
  auto reached = walk(path, rule);
  if (!reached) return reached.error();
  const std::string action = fmt::format("open {}", rule.what);
  if (!reached->whole) return os_error(action, path.string(), ENOENT);
  Fd fd(openat(reached->fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return os_error(action, path.string(), errno);
  return fd;
}

Result<TrustedFile> open_trusted_file(const fs::path& path, const WalkRule& rule) {
  const auto absolute = from_root(path, rule.what);
  if (!absolute) return absolute.error();
  const std::string asked = absolute->string();
  const std::string action = fmt::format("open {}", rule.what);
  WalkRule only_read = rule;
  only_read.if_missing = IfMissing::kFail;
  Walker walker(only_read, asked);
  if (auto gone = walker.go(*absolute); !gone) return gone.error();
  if (walker.stopped() == Walker::Stop::kMissing) return os_error(action, asked, ENOENT);
  if (walker.stopped() == Walker::Stop::kNotDirectory && !walker.at_last()) {
    return os_error(action, asked, ENOTDIR);
  }
  const Error irregular{ErrorCode::kDamaged,
                        fmt::format("{} {} is not a regular file", rule.what, asked), ""};
  if (walker.stopped() == Walker::Stop::kNot) return irregular;
  TrustedFile file;
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  file.fd = Fd(openat(walker.here().get(), walker.name().c_str(), kFlags));
  if (!file.fd && errno == ENXIO) return irregular;  // A socket.
  if (!file.fd) return os_error(action, asked, errno);
  if (fstat(file.fd.get(), &file.status) != 0) return os_error("examine", asked, errno);
  if (!S_ISREG(file.status.st_mode)) return irregular;
  if (auto fine = check_thing(asked, file.status, rule); !fine) return fine.error();
  return file;
}

}  // namespace broach::cache
