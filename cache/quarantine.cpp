#include "cache/quarantine.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <span>

#include <fmt/core.h>

#include "cache/file.hpp"
#include "cache/folder_listing.hpp"
#include "cache/os_error.hpp"
#include "cache/wire.hpp"

namespace broach::cache {
namespace {

constexpr std::string_view kFolder = "quarantine";
constexpr std::string_view kReasonSuffix = ".why";
constexpr std::size_t kMaxRows = 64;
constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMaxReasonBytes = 4096;

// Names start with the time, so that the oldest sort first.
std::string quarantined_name(const std::string& name, int attempt) {
  return fmt::format("{:013}.{}.{}", now_unix_ms(), attempt, name);
}

void remove_any(int folder, const std::string& name) {
  if (unlinkat(folder, name.c_str(), 0) != 0) unlinkat(folder, name.c_str(), AT_REMOVEDIR);
}

}  // namespace

Result<void> Quarantine::take(int folder, const std::string& name, std::string_view why) {
  const auto quarantine = directory_.folder(kFolder, IfMissing::kCreate);
  int error = 0;
  if (quarantine) {
    const int target = (*quarantine)->get();
    for (int attempt = 0; attempt < 16; ++attempt) {
      const std::string moved = quarantined_name(name, attempt);
      // RENAME_NOREPLACE would be simpler but is missing on NFS: a taken name is looked for.
      struct stat taken {};
      if (fstatat(target, moved.c_str(), &taken, AT_SYMLINK_NOFOLLOW) == 0) continue;
      if (renameat(folder, name.c_str(), target, moved.c_str()) != 0) {
        error = errno;
        break;
      }
      const Fd reason(openat(target, (moved + std::string(kReasonSuffix)).c_str(),
                             O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (reason) {
        const std::string_view text = why.substr(0, kMaxReasonBytes);
        (void)write_bytes(reason, std::as_bytes(std::span(text)), "quarantine reason");
      }
      trim(target);
      return {};
    }
  }
  if (error == ENOENT) return {};  // Another process set it aside first.
  if (unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return os_error("set aside", name, errno);
}

void Quarantine::trim(int folder) {
  auto names = names_in(folder, (directory_.path() / kFolder).string());
  if (!names) return;
  std::erase_if(*names, [](const std::string& name) { return name.ends_with(kReasonSuffix); });
  std::sort(names->begin(), names->end(), std::greater<>());
  std::size_t rows = 0;
  std::uint64_t bytes = 0;
  for (const std::string& name : *names) {
    struct stat status {};
    if (fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    bytes += static_cast<std::uint64_t>(status.st_size);
    // The newest stays, however large.
    if (++rows == 1 || (rows <= kMaxRows && bytes <= kMaxBytes)) continue;
    remove_any(folder, name);
    remove_any(folder, name + std::string(kReasonSuffix));
  }
}

Result<std::vector<QuarantineRow>> Quarantine::list() {
  const std::string path = (directory_.path() / kFolder).string();
  const auto folder = directory_.folder(kFolder, IfMissing::kFail);
  if (!folder) {
    if (folder.error().code == ErrorCode::kNotFound) return std::vector<QuarantineRow>{};
    return folder.error();
  }
  auto names = names_in((*folder)->get(), path);
  if (!names) return names.error();
  std::sort(names->begin(), names->end());
  std::vector<QuarantineRow> rows;
  for (const std::string& name : *names) {
    if (name.ends_with(kReasonSuffix)) continue;
    QuarantineRow row;
    row.name = name;
    struct stat status {};
    if (fstatat((*folder)->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    row.bytes = static_cast<std::uint64_t>(status.st_size);
    row.created_unix_ms = parse_number(name.substr(0, name.find('.'))).value_or(0);
    const std::string reason = name + std::string(kReasonSuffix);
    if (const auto file = open_file((*folder)->get(), reason, path, Trust::kOwn)) {
      const auto text =
          read_bytes(file->fd, 0, std::min<std::uint64_t>(file->bytes, kMaxReasonBytes), path);
      if (text) row.why.assign(reinterpret_cast<const char*>(text->data()), text->size());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace broach::cache
