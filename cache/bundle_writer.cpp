#include "cache/bundle_writer.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "cache/bundle_format.hpp"
#include "cache/fd.hpp"
#include "cache/file.hpp"
#include "cache/frame.hpp"
#include "cache/os_error.hpp"

namespace broach::cache {
namespace {

constexpr mode_t kBundleMode = 0644;

/// A file beside its final place that is removed unless it gets there.
class Draft {
 public:
  static Result<Draft> create(const std::filesystem::path& path) {
    Draft draft;
    draft.name_ = path.string() + ".XXXXXX";
    draft.fd_ = Fd(mkostemp(draft.name_.data(), O_CLOEXEC));
    if (!draft.fd_) {
      draft.name_.clear();
      return os_error("create a temporary file for", path.string(), errno);
    }
    return draft;
  }
  Draft(Draft&& other) noexcept
      : name_(std::exchange(other.name_, {})), fd_(std::move(other.fd_)) {}
  Draft& operator=(Draft&&) = delete;
  ~Draft() {
    if (!name_.empty()) (void)unlink(name_.c_str());
  }

  const Fd& fd() const noexcept { return fd_; }
  const std::string& name() const noexcept { return name_; }

  Result<void> move_to(const std::filesystem::path& path) {
    if (fchmod(fd_.get(), kBundleMode) != 0) return os_error("set the mode of", name_, errno);
    if (fsync(fd_.get()) != 0) return os_error("sync", name_, errno);
    if (rename(name_.c_str(), path.c_str()) != 0) {
      return os_error("rename a temporary file to", path.string(), errno);
    }
    name_.clear();
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    const Fd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Some file systems cannot sync a folder and say EINVAL.
    if (parent && fsync(parent.get()) != 0 && errno != EINVAL) {
      return os_error("sync the folder of", path.string(), errno);
    }
    return {};
  }

 private:
  Draft() = default;

  std::string name_;
  Fd fd_;
};

Result<void> seek(const Draft& draft, std::uint64_t offset) {
  if (lseek(draft.fd().get(), static_cast<off_t>(offset), SEEK_SET) >= 0) return {};
  return os_error("seek in", draft.name(), errno);
}

}  // namespace

Object without_circumstances(Object object) {
  object.provenance.created_unix_ms = 0;
  object.provenance.compile_ms = 0;
  object.provenance.log.clear();
  return object;
}

Result<WrittenBundle> write_bundle(const std::filesystem::path& path, std::vector<Key> keys,
                                   const std::function<Result<Object>(const Key&)>& read,
                                   const SecretKey* signer) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (keys.empty() || keys.size() > kMaxBundleEntries) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a bundle holds 1 to {} objects, not {}", kMaxBundleEntries, keys.size()), ""};
  }
  std::vector<BundleEntry> entries(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) entries[i].key = keys[i];
  // Entries are of one length, so that the place of the frames is known before their sizes are.
  const std::uint64_t front_bytes = encode_front(entries, signer).size();

  auto draft = Draft::create(path);
  if (!draft) return draft.error();
  if (auto placed = seek(*draft, front_bytes); !placed) return placed.error();
  FrameCompressor compressor;
  WrittenBundle written{keys.size(), 0, front_bytes};
  for (BundleEntry& entry : entries) {
    auto object = read(entry.key);
    if (!object) return object.error();
    const auto bytes = encode(without_circumstances(std::move(*object)));
    const auto frame = compressor.compress(bytes);
    if (!frame) return frame.error();
    entry.frame_bytes = frame->size();
    entry.object_bytes = bytes.size();
    entry.frame_digest = strong_digest_of(*frame);
    if (auto fine = check_claims(entry); !fine) return fine.error();
    if (auto put = write_bytes(draft->fd(), *frame, draft->name()); !put) return put.error();
    written.object_bytes += bytes.size();
    written.file_bytes += frame->size();
  }
  const std::string front = encode_front(entries, signer);
  if (auto placed = seek(*draft, 0); !placed) return placed.error();
  if (auto put = write_bytes(draft->fd(), std::as_bytes(std::span(front)), draft->name()); !put) {
    return put.error();
  }
  if (auto moved = draft->move_to(path); !moved) return moved.error();
  return written;
}

}  // namespace broach::cache
