#include "specializer/own/header_pack.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cache/file.hpp"
#include "cache/os_error.hpp"
#include "cache/trusted_path.hpp"

namespace broach::specializer::own {
namespace {

namespace fs = std::filesystem;

cache::WalkRule rule() { return {cache::Trust::kInstalled, "header pack", {}, 0, {}}; }

Result<std::string> contents(const cache::Fd& fd, std::uint64_t size, const std::string& path) {
  if (size > kMaxPackFileBytes) {
    return Error{ErrorCode::kLimitExceeded,
                 fmt::format("header {} has {} bytes; a pack's file has at most {}", path, size,
                             kMaxPackFileBytes),
                 ""};
  }
  auto bytes = cache::read_bytes(fd, 0, size, path);
  if (!bytes) return bytes.error();
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

}  // namespace

/// A directory that files lie below, and those of its folders that were opened.
struct HeaderPack::Root {
  fs::path path;
  bool seen = false;  ///< It exists and is trusted.
  std::map<std::string, cache::Fd, std::less<>> folders;

  /// A folder's descriptor, or -1 where there is none.
  Result<int> folder(const std::string& name) {
    const auto known = folders.find(name);
    if (known != folders.end()) return known->second.get();
    auto opened = cache::open_trusted_directory(path / name, rule());
    if (!opened) {
      // ENOTDIR is no error either: "cuda" may be a folder in one root and a file in another.
      const bool is_missing = opened.error().code == ErrorCode::kNotFound ||
                              opened.error().detail.find("ENOTDIR") != std::string::npos;
      if (!is_missing || name.empty()) return opened.error();
      return folders.emplace(name, cache::Fd()).first->second.get();
    }
    return folders.emplace(name, std::move(*opened)).first->second.get();
  }

  Result<std::optional<std::string>> read(const std::string& file) {
    if (!seen) {
      if (auto top = folder(""); !top) return top.error();
      seen = true;
    }
    const std::size_t slash = file.rfind('/');
    const std::string leaf = slash == std::string::npos ? file : file.substr(slash + 1);
    auto in = folder(slash == std::string::npos ? std::string() : file.substr(0, slash));
    if (!in) return in.error();
    if (*in < 0) return std::optional<std::string>();
    const std::string full = (path / file).string();
    auto plain = cache::open_file(*in, leaf, full, cache::Trust::kInstalled);
    if (plain) return wrapped(contents(plain->fd, plain->bytes, full));
    if (plain.error().code == ErrorCode::kNotFound) return std::optional<std::string>();
    if (plain.error().code != ErrorCode::kDamaged) return plain.error();
    // A link is followed as far as each of its parts can be trusted.
    auto linked = cache::open_trusted_file(full, rule());
    if (linked) {
      const auto size = static_cast<std::uint64_t>(linked->status.st_size);
      return wrapped(contents(linked->fd, size, full));
    }
    const ErrorCode code = linked.error().code;
    // A directory of that name, or a link to nowhere, is no header.
    if (code == ErrorCode::kNotFound || code == ErrorCode::kDamaged) {
      return std::optional<std::string>();
    }
    return linked.error();
  }

 private:
  static Result<std::optional<std::string>> wrapped(Result<std::string> bytes) {
    if (!bytes) return bytes.error();
    return std::optional(*std::move(bytes));
  }
};

HeaderPack::HeaderPack(std::string name) : name_(std::move(name)) {}
HeaderPack::~HeaderPack() = default;

std::shared_ptr<const HeaderPack> HeaderPack::of_directories(std::string name,
                                                             std::vector<fs::path> roots,
                                                             IsPart is_part) {
  std::shared_ptr<HeaderPack> pack(new HeaderPack(std::move(name)));
  pack->is_part_ = is_part;
  for (fs::path& root : roots) pack->roots_.push_back({std::move(root), false, {}});
  return pack;
}

std::shared_ptr<const HeaderPack> HeaderPack::of_files(std::string name,
                                                       std::vector<SourceFile> files) {
  std::shared_ptr<HeaderPack> pack(new HeaderPack(std::move(name)));
  for (SourceFile& file : files) {
    auto includes = scan_includes(file.bytes);
    pack->files_.insert_or_assign(
        std::move(file.name),
        std::make_unique<PackFile>(PackFile{std::move(file.bytes), std::move(includes)}));
  }
  return pack;
}

std::shared_ptr<const HeaderPack> HeaderPack::absent(std::string name, Error why) {
  std::shared_ptr<HeaderPack> pack(new HeaderPack(std::move(name)));
  pack->absent_ = std::move(why);
  return pack;
}

Result<const PackFile*> HeaderPack::find(std::string_view file) const {
  if (is_part_ != nullptr && !is_part_(file)) return nullptr;
  if (absent_) return *absent_;
  const std::lock_guard lock(mutex_);
  const auto known = files_.find(file);
  if (known != files_.end()) return known->second.get();
  if (roots_.empty()) return nullptr;
  const std::string name(file);
  auto bytes = read(name);
  if (!bytes) return bytes.error();
  return files_.emplace(name, *std::move(bytes)).first->second.get();
}

Result<std::unique_ptr<PackFile>> HeaderPack::read(const std::string& file) const {
  for (Root& root : roots_) {
    auto bytes = root.read(file);
    if (!bytes) {
      Error error = bytes.error();
      error.message = fmt::format("pack \"{}\": {}", name_, error.message);
      return error;
    }
    if (!bytes->has_value()) continue;
    if (++read_ > kMaxPackFiles) {
      return Error{
          ErrorCode::kLimitExceeded,
          fmt::format("pack \"{}\": more than {} of its files are included", name_, kMaxPackFiles),
          ""};
    }
    auto includes = scan_includes(**bytes);
    return std::make_unique<PackFile>(PackFile{**std::move(bytes), std::move(includes)});
  }
  return std::unique_ptr<PackFile>();
}

}  // namespace broach::specializer::own
