#include "cache/trusted_keys.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cache/directory.hpp"
#include "cache/file.hpp"
#include "cache/folder_listing.hpp"
#include "cache/key_file.hpp"
#include "cache/os_error.hpp"

namespace broach::cache {
namespace {

constexpr std::string_view kSuffix = ".pub";
constexpr std::string_view kWhat = "directory of trusted keys";
constexpr std::uint64_t kMaxFileBytes = 4096;
// Every key costs a file at start-up; a directory with more is not one of keys.
constexpr std::size_t kMaxKeys = 256;

Result<PublicKey> read_key(int folder, const std::string& name, const std::string& path) {
  const auto file = open_file(folder, name, path, Trust::kInstalled);
  if (!file) return file.error();
  if (file->bytes > kMaxFileBytes) {
    return Error{ErrorCode::kDamaged, fmt::format("{} is too long for a key file", path), ""};
  }
  const auto bytes = read_bytes(file->fd, 0, file->bytes, path);
  if (!bytes) return bytes.error();
  auto key = parse_public_key({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (!key) {
    return Error{key.error().code, fmt::format("{}: {}", path, key.error().message), ""};
  }
  return key;
}

}  // namespace

TrustedKeys TrustedKeys::load(const std::vector<std::filesystem::path>& directories) {
  TrustedKeys keys;
  for (const auto& directory : directories) {
    keys.searched_.push_back(directory.string());
    keys.load_directory(directory);
  }
  return keys;
}

void TrustedKeys::load_directory(const std::filesystem::path& path) {
  const std::string name = path.string();
  if (!path.is_absolute()) {
    problems_.push_back(
        fmt::format("directory of trusted keys \"{}\" is not an absolute path", name));
    return;
  }
  const auto folder = open_trusted_directory(path, {Trust::kInstalled, kWhat});
  if (!folder) {
    if (folder.error().code != ErrorCode::kNotFound) problems_.push_back(folder.error().message);
    return;
  }
  auto names = names_in(folder->get(), name);
  if (!names) {
    problems_.push_back(names.error().message);
    return;
  }
  std::erase_if(*names, [](const std::string& file) { return !file.ends_with(kSuffix); });
  std::sort(names->begin(), names->end());
  if (names->size() > kMaxKeys) {
    problems_.push_back(
        fmt::format("trusted keys are not taken from {}: {} files, and at most {} "
                    "are read",
                    name, names->size(), kMaxKeys));
    return;
  }
  for (const std::string& file : *names) {
    auto key = read_key(folder->get(), file, (path / file).string());
    if (key) {
      add(std::move(*key));
    } else {
      problems_.push_back("a trusted key is not taken: " + key.error().message);
    }
  }
}

void TrustedKeys::add(PublicKey key) {
  const SignerId id = key.id();
  keys_.insert_or_assign(id, std::move(key));
}

Result<PublicKey> TrustedKeys::verify(Signed kind, std::span<const std::byte> bytes,
                                      const Signature& signature) const {
  const auto found = keys_.find(signature.signer);
  if (found == keys_.end()) {
    const std::string searched = searched_.empty()
                                     ? "any directory: none is named"
                                     : fmt::format("{}", fmt::join(searched_, " or "));
    return Error{
        ErrorCode::kDenied,
        fmt::format("it is signed by key {}, which is not trusted: no file holds it in {}; "
                    "if you trust who has the secret key, run `broach key trust` with "
                    "the public one",
                    signature.signer.hex(), searched),
        "", Reason::kUntrusted};
  }
  if (auto right = check_signature(kind, bytes, signature, found->second); !right) {
    return right.error();
  }
  return found->second;
}

Result<std::filesystem::path> trust_key(const std::filesystem::path& directory,
                                        const PublicKey& key) {
  const auto own = Directory::open(directory, Trust::kOwn);
  if (!own) return own.error();
  if (const auto made = (*own)->root(IfMissing::kCreate); !made) return made.error();
  auto place = (*own)->path() / (key.id().hex() + std::string(kSuffix));
  // The name tells the key: a file that is there already holds the same one.
  if (const auto there = read_public_key(place); there && there->id() == key.id()) return place;
  if (auto written = write_public_key(place, key); !written) return written.error();
  return place;
}

Result<void> distrust_key(const std::filesystem::path& directory, std::string_view id) {
  const auto folder = open_trusted_directory(directory, {Trust::kOwn, kWhat});
  if (!folder) return folder.error();
  const auto names = names_in(folder->get(), directory.string());
  if (!names) return names.error();
  bool found = false;
  for (const std::string& name : *names) {
    if (!name.ends_with(kSuffix)) continue;
    const auto key = read_key(folder->get(), name, (directory / name).string());
    if (!key || key->id().hex() != id) continue;
    if (unlinkat(folder->get(), name.c_str(), 0) != 0) {
      return os_error("remove", (directory / name).string(), errno);
    }
    found = true;
  }
  if (found) return {};
  return Error{ErrorCode::kNotFound,
               fmt::format("no key {} in {}; `broach key ls` lists the trusted ones", id,
                           directory.string()),
               ""};
}

std::vector<PublicKey> TrustedKeys::keys() const {
  std::vector<PublicKey> all;
  for (const auto& [id, key] : keys_) all.push_back(key);
  return all;
}

}  // namespace broach::cache
