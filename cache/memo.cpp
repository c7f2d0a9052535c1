#include "cache/memo.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "cache/digest.hpp"
#include "cache/file.hpp"
#include "cache/folder_listing.hpp"
#include "cache/key.hpp"
#include "cache/memo_record.hpp"

namespace broach::cache {
namespace {

constexpr std::uint64_t kMaxBytes = 256 * 1024;
constexpr std::size_t kMaxFiles = 256;

std::string file_name(std::string_view name) { return Key{digest_of(name)}.hex(); }

void trim(int folder, const std::string& path) {
  const auto names = names_in(folder, path);
  if (!names || names->size() <= kMaxFiles) return;
  std::vector<std::pair<std::int64_t, std::string>> by_age;
  for (const std::string& name : *names) {
    struct stat status {};
    if (fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    by_age.emplace_back(status.st_mtim.tv_sec, name);
  }
  std::sort(by_age.begin(), by_age.end());
  for (std::size_t i = 0; i + kMaxFiles < by_age.size(); ++i) {
    (void)unlinkat(folder, by_age[i].second.c_str(), 0);
  }
}

}  // namespace

std::optional<std::string> Memos::find(std::string_view name) {
  const auto folder = directory_.folder(folder_, IfMissing::kFail);
  if (!folder) return std::nullopt;
  const std::string path = (directory_.path() / folder_).string();
  const auto file = open_file((*folder)->get(), file_name(name), path, directory_.trust());
  if (!file || file->bytes > kMaxBytes) return std::nullopt;
  const auto bytes = read_bytes(file->fd, 0, file->bytes, path);
  if (!bytes) return std::nullopt;
  return value_of_memo({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, name);
}

void Memos::forget(std::string_view name) {
  const auto folder = directory_.folder(folder_, IfMissing::kFail);
  if (folder) (void)unlinkat((*folder)->get(), file_name(name).c_str(), 0);
}

Result<void> Memos::remember(std::string_view name, std::string_view value) {
  const std::string text = memo_record(name, value);
  if (text.size() > kMaxBytes) {
    return Error{ErrorCode::kInvalidArgument, "memo \"" + std::string(name) + "\" is too long", ""};
  }
  const auto folder = directory_.folder(folder_, IfMissing::kCreate);
  if (!folder) return folder.error();
  const auto scratch = directory_.folder("tmp", IfMissing::kCreate);
  if (!scratch) return scratch.error();
  const std::string path = (directory_.path() / folder_).string();
  auto stored = publish_file((*scratch)->get(), (*folder)->get(), file_name(name),
                             std::as_bytes(std::span(text)), path, directory_.file_mode());
  if (stored) trim((*folder)->get(), path);
  return stored;
}

}  // namespace broach::cache
