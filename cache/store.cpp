#include "cache/store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>

#include "cache/folder_listing.hpp"
#include "cache/os_error.hpp"

namespace broach::cache {
namespace {

constexpr std::string_view kObjects = "objects";
constexpr std::string_view kScratch = "tmp";

// A use is written down once a minute at most: eviction needs no finer clock.
constexpr std::int64_t kTouchEveryMs = 60'000;

// What is wrong with the bytes, as opposed to with the file system or with our age.
bool is_damage(const Error& error) { return error.code == ErrorCode::kDamaged; }

bool refused_by_signature(const Error& error) {
  return error.reason == Reason::kForged || error.reason == Reason::kUntrusted ||
         error.reason == Reason::kUnsigned;
}

void touch(const OpenFile& file) {
  if (std::abs(now_unix_ms() - file.used_unix_ms) < kTouchEveryMs) return;
  const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  (void)futimens(file.fd.get(), times);
}

Result<std::vector<std::byte>> read_whole(const OpenFile& file, const std::string& path) {
  if (file.bytes > kMaxObjectBytes) {
    return Error{ErrorCode::kDamaged,
                 fmt::format("{} has {} bytes; no object has more than {}", path, file.bytes,
                             kMaxObjectBytes),
                 ""};
  }
  return read_bytes(file.fd, 0, file.bytes, path);
}

}  // namespace

Store::Store(Directory& directory, Access access, Reporter& reporter, const TrustedKeys* trusted)
    : directory_(directory),
      access_(access),
      reporter_(reporter),
      trusted_(trusted),
      quarantine_(directory),
      signatures_(directory) {}

std::string Store::path_of(const Key& key) const {
  return (directory_.path() / object_name(key)).string();
}

Result<std::shared_ptr<const Fd>> Store::shelf(const Key& key, IfMissing if_missing) {
  return directory_.folder(fmt::format("{}/{:02x}", kObjects, key.bytes[0]), if_missing);
}

Result<Store::Loaded> Store::load(const Key& key) {
  const std::string path = path_of(key);
  const auto folder = shelf(key, IfMissing::kFail);
  if (!folder) return folder.error();
  auto file = open_file((*folder)->get(), key.hex(), path, directory_.trust());
  if (!file) {
    const bool unsafe = file.error().reason == Reason::kUnsafe;
    if (!unsafe && !is_damage(file.error())) return file.error();
    return Loaded{OpenFile{}, {}, Error{ErrorCode::kDamaged, file.error().message, ""}};
  }
  auto bytes = read_whole(*file, path);
  if (!bytes) {
    if (!is_damage(bytes.error())) return bytes.error();
    return Loaded{std::move(*file), {}, bytes.error()};
  }
  if (auto allowed = check_signed(key, *bytes); !allowed) return allowed.error();
  auto object = decode(*bytes);
  if (object && object->key.key != key) {
    object = Error{ErrorCode::kDamaged, "the object is named " + object->key.key.hex(), ""};
  }
  return Loaded{std::move(*file), std::move(*bytes), std::move(object)};
}

// Where others can write, what is not signed is not even parsed.
Result<void> Store::check_signed(const Key& key, std::span<const std::byte> bytes) {
  if (directory_.trust() != Trust::kSigned) return {};
  const auto signature = signatures_.read(key);
  Error refused;
  if (signature) {
    static const TrustedKeys kNobody;
    const auto signer =
        (trusted_ == nullptr ? kNobody : *trusted_).verify(Signed::kObject, bytes, *signature);
    if (signer) return {};
    refused = signer.error();
  } else if (signature.error().code == ErrorCode::kNotFound) {
    refused = {ErrorCode::kDenied,
               "it has no signature, and others can write to its directory; sign the directory "
               "(broach key sign)",
               "", Reason::kUnsigned};
  } else {
    refused = {ErrorCode::kDenied, signature.error().message, "", Reason::kForged};
  }
  refused.message = fmt::format("{}: {}", path_of(key), refused.message);
  return refused;
}

Result<std::optional<Object>> Store::load_checked(
    const Key& key, LoadFor purpose, const std::function<Result<void>(const Object&)>& fits) {
  if (known_bad(key)) return std::optional<Object>{};
  // Twice at most: a writer may replace a damaged object while we look at it.
  for (int attempt = 0;; ++attempt) {
    auto loaded = load(key);
    if (!loaded) {
      if (loaded.error().code == ErrorCode::kNotFound) return std::optional<Object>{};
      return loaded.error();
    }
    if (loaded->object) {
      if (auto fine = fits(*loaded->object); !fine) loaded->object = fine.error();
    }
    if (loaded->object) {
      if (purpose == LoadFor::kUse && !read_only()) touch(loaded->file);
      return std::optional<Object>(std::move(*loaded->object));
    }
    const Error& error = loaded->object.error();
    if (!is_damage(error)) return error;
    const bool same = set_aside_file(key, loaded->file.fd ? &loaded->file : nullptr, error.message);
    if (same || attempt > 0) return error;
  }
}

std::optional<Object> Store::find(const KeyRecord& key) {
  auto found = load_checked(key.key, LoadFor::kUse, [&](const Object& object) -> Result<void> {
    if (object.key.stream == key.stream) return {};
    return Error{ErrorCode::kDamaged,
                 "the object is another's: " + first_difference(key, object.key), ""};
  });
  if (found) return std::move(*found);
  const Error& error = found.error();
  if (error.reason == Reason::kNewerFormat) {
    reporter_.count("newer_format");
  } else if (refused_by_signature(error)) {
    reporter_.fault("signature_refused", error, "treated as a miss");
  } else if (!is_damage(error)) {
    reporter_.fault("read_failed", error, "treated as a miss");
  }
  return std::nullopt;
}

Result<std::optional<Object>> Store::read(const Key& key) {
  return load_checked(key, LoadFor::kCheck, [](const Object&) { return Result<void>(); });
}

Result<void> Store::verify(const Key& key) {
  {
    const std::lock_guard lock(mutex_);
    bad_.erase(key);  // It was found bad by an earlier look; this one tells again.
  }
  const auto found = read(key);
  if (!found) return found.error();
  if (!found->has_value()) return os_error("find", path_of(key), ENOENT);
  return {};
}

Result<StoredHead> Store::read_head(const Key& key) {
  if (directory_.trust() == Trust::kSigned) {
    // A signature covers the whole object.
    auto loaded = load(key);
    if (!loaded) return loaded.error();
    if (!loaded->object) return loaded->object.error();
    const auto header = decode_header(loaded->bytes);
    if (!header) return header.error();
    loaded->object->payload.clear();
    return StoredHead{std::move(*loaded->object), *header};
  }
  const std::string path = path_of(key);
  const auto folder = shelf(key, IfMissing::kFail);
  if (!folder) return folder.error();
  const auto file = open_file((*folder)->get(), key.hex(), path, directory_.trust());
  if (!file) return file.error();
  const auto front = read_bytes(file->fd, 0, kObjectHeaderBytes, path);
  if (!front) return front.error();
  const auto header = decode_header(*front);
  if (!header) return header.error();
  if (header->file_bytes != file->bytes) {
    return Error{ErrorCode::kDamaged, path + " is not as long as its header says", ""};
  }
  const auto head = read_bytes(file->fd, 0, header->payload_offset, path);
  if (!head) return head.error();
  auto object = decode_head(*head);
  if (!object) return object.error();
  if (object->key.key != key) {
    return Error{ErrorCode::kDamaged, "the object is named " + object->key.key.hex(), ""};
  }
  return StoredHead{std::move(*object), *header};
}

Result<void> Store::put_once(const Key& key, std::span<const std::byte> encoded) {
  const auto scratch = directory_.folder(kScratch, IfMissing::kCreate);
  if (!scratch) return scratch.error();
  // Where a temporary file can be written, what is denied is one folder of 256.
  const auto of_shelf = [&](Error error) {
    if (error.code == ErrorCode::kDenied &&
        faccessat((*scratch)->get(), ".", W_OK | X_OK, AT_EACCESS) == 0) {
      error.code = ErrorCode::kIo;
      error.detail = kShelf;
    }
    return error;
  };
  const auto folder = shelf(key, IfMissing::kCreate);
  if (!folder) return of_shelf(folder.error());
  auto stored = publish_file((*scratch)->get(), (*folder)->get(), key.hex(), encoded, path_of(key),
                             directory_.file_mode());
  if (!stored) return of_shelf(stored.error());
  return stored;
}

Result<void> Store::put(const Key& key, std::span<const std::byte> encoded) {
  auto stored = put_once(key, encoded);
  if (!stored && stored.error().code == ErrorCode::kNotFound) {
    // The directory was removed underfoot: what is open leads nowhere, so open it anew.
    directory_.refresh();
    reporter_.count("directory_reopened");
    stored = put_once(key, encoded);
  }
  if (stored) {
    signatures_.remove(key);
    const std::lock_guard lock(mutex_);
    bad_.erase(key);
  }
  return stored;
}

Result<void> Store::sign(const Key& key, const SecretKey& signer) {
  const auto loaded = load(key);
  if (!loaded) return loaded.error();
  if (!loaded->object) return loaded->object.error();
  return signatures_.write(key, signer.sign(Signed::kObject, loaded->bytes));
}

Result<void> Store::remove(const Key& key) {
  const auto folder = shelf(key, IfMissing::kFail);
  if (!folder) {
    if (folder.error().code == ErrorCode::kNotFound) return {};
    return folder.error();
  }
  if (unlinkat((*folder)->get(), key.hex().c_str(), 0) != 0 && errno != ENOENT) {
    return os_error("remove", path_of(key), errno);
  }
  signatures_.remove(key);
  return {};
}

bool Store::known_bad(const Key& key) {
  const std::lock_guard lock(mutex_);
  return bad_.contains(key);
}

void Store::set_aside(const Key& key, std::string_view why) {
  (void)set_aside_file(key, nullptr, why);
}

// Returns false when the file that was read has been replaced since.
bool Store::set_aside_file(const Key& key, const OpenFile* file, std::string_view why) {
  const std::string name = key.hex();
  const auto folder = shelf(key, IfMissing::kFail);
  if (!read_only() && folder) {
    struct stat status {};
    if (file != nullptr &&
        fstatat((*folder)->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        (status.st_ino != file->inode || status.st_dev != file->device)) {
      return false;
    }
    const auto taken = quarantine_.take((*folder)->get(), name, why);
    if (taken) {
      reporter_.count("quarantined");
      return true;
    }
    reporter_.fault("quarantine_failed", taken.error(), "the damaged object stays and is not used");
  }
  reporter_.count("damaged_ignored");
  const std::lock_guard lock(mutex_);
  bad_.insert(key);
  return true;
}

Result<std::vector<StoredObject>> Store::list(std::string_view hex_prefix,
                                              std::vector<Error>* unread) {
  std::vector<StoredObject> objects;
  const auto top = directory_.folder(kObjects, IfMissing::kFail);
  if (!top) {
    if (top.error().code == ErrorCode::kNotFound) return objects;
    return top.error();
  }
  auto shelves = names_in((*top)->get(), (directory_.path() / kObjects).string());
  if (!shelves) return shelves.error();
  for (const std::string& label : *shelves) {
    const std::size_t common = std::min(label.size(), hex_prefix.size());
    if (hex_prefix.substr(0, common) != label.substr(0, common)) continue;
    const auto read = list_shelf(label, hex_prefix, objects);
    if (read || read.error().code == ErrorCode::kNotFound) continue;  // Removed meanwhile.
    reporter_.fault("shelf_unread", read.error(), "what it holds is not listed; other folders are");
    if (unread != nullptr) unread->push_back(read.error());
  }
  std::sort(objects.begin(), objects.end(),
            [](const StoredObject& a, const StoredObject& b) { return a.key < b.key; });
  return objects;
}

Result<void> Store::list_shelf(const std::string& label, std::string_view hex_prefix,
                               std::vector<StoredObject>& objects) {
  const auto folder = directory_.folder(fmt::format("{}/{}", kObjects, label), IfMissing::kFail);
  if (!folder) return folder.error();
  const auto names = names_in((*folder)->get(), (directory_.path() / kObjects / label).string());
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!name.starts_with(hex_prefix) || !name.starts_with(label)) continue;
    const auto key = Key::from_hex(name);
    struct stat status {};
    if (!key || fstatat((*folder)->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    const std::int64_t used = std::int64_t{status.st_atim.tv_sec} * 1000;
    objects.push_back({*key, static_cast<std::uint64_t>(status.st_size), used});
  }
  return {};
}

std::size_t Store::sweep() {
  const auto scratch = directory_.folder(kScratch, IfMissing::kFail);
  if (!scratch || read_only()) return 0;
  return sweep_scratch((*scratch)->get(), (directory_.path() / kScratch).string());
}

}  // namespace broach::cache
