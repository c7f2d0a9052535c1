#include "cache/bundle.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "cache/file.hpp"
#include "cache/frame.hpp"
#include "cache/os_error.hpp"
#include "cache/trusted_path.hpp"

namespace broach::cache {
namespace {

Error with_file(const std::filesystem::path& path, Error error) {
  error.message = fmt::format("bundle {}: {}", path.string(), error.message);
  return error;
}

// What a trusted key signed may lie anywhere. A pipe is not waited for.
Result<TrustedFile> open_anywhere(const std::filesystem::path& path) {
  TrustedFile file;
  file.fd = Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.fd) return os_error("open bundle", path.string(), errno);
  if (fstat(file.fd.get(), &file.status) != 0) return os_error("examine", path.string(), errno);
  if (S_ISREG(file.status.st_mode)) return file;
  return with_file(path, {ErrorCode::kDamaged, "it is not a regular file", ""});
}

}  // namespace

Result<std::unique_ptr<Bundle>> Bundle::open(const std::filesystem::path& path,
                                             const TrustedKeys& trusted, BundleTrust trust) {
  auto file = trust == BundleTrust::kOwner ? open_trusted_file(path, {Trust::kInstalled, "bundle"})
                                           : open_anywhere(path);
  if (!file) return file.error();
  std::unique_ptr<Bundle> bundle(new Bundle(path, std::move(file->fd)));
  auto opened =
      bundle->open_front(static_cast<std::uint64_t>(file->status.st_size), trusted, trust);
  if (!opened) return with_file(path, opened.error());
  return bundle;
}

Result<void> Bundle::open_front(std::uint64_t size, const TrustedKeys& trusted, BundleTrust trust) {
  const std::string name = path_.string();
  const auto start = read_bytes(file_, 0, std::min<std::uint64_t>(size, kBundleHeadBytes), name);
  if (!start) return start.error();
  const auto head = decode_bundle_head(*start);
  if (!head) return head.error();
  if (head->file_bytes != size) {
    return Error{ErrorCode::kDamaged,
                 fmt::format("it is {}: {} of {} bytes are there",
                             size < head->file_bytes ? "truncated" : "longer than it was made",
                             size, head->file_bytes),
                 ""};
  }
  const auto bytes = read_bytes(file_, 0, head->front_bytes(), name);
  if (!bytes) return bytes.error();
  // The signature first: what nobody vouches for is not even parsed.
  if (head->signature_bytes != 0) {
    const auto signature = decode_signature(std::span(*bytes).last(kSignatureBytes));
    if (!signature) return signature.error();
    const auto signer = trusted.verify(Signed::kBundle, signed_part(*bytes, *head), *signature);
    // Under the caller's own word a key may be unknown, but a signature that is there must hold.
    if (!signer && (trust == BundleTrust::kSignature || signer.error().reason == Reason::kForged)) {
      return signer.error();
    }
    if (signer) signed_by_ = *signer;
  } else if (trust == BundleTrust::kSignature) {
    return Error{ErrorCode::kDenied,
                 "it is not signed, and who could have written it is not known; sign it (broach "
                 "export --sign KEY), or vouch for it (broach import --unsigned)",
                 "", Reason::kUnsigned};
  }
  auto front = decode_bundle_front(*bytes);
  if (!front) return front.error();
  front_ = std::move(*front);
  return {};
}

const BundleEntry* Bundle::entry(const Key& key) const {
  const auto at = std::lower_bound(
      front_.entries.begin(), front_.entries.end(), key,
      [](const BundleEntry& entry, const Key& wanted) { return entry.key < wanted; });
  return at != front_.entries.end() && at->key == key ? &*at : nullptr;
}

Error Bundle::about(const BundleEntry& entry, const Error& error) const {
  return {error.code,
          fmt::format("{} in bundle {}: {}", object_name(entry.key), path_.string(), error.message),
          error.detail, error.reason};
}

Result<std::vector<std::byte>> Bundle::frame(const BundleEntry& entry) const {
  auto bytes = read_bytes(file_, entry.offset, entry.frame_bytes, path_.string());
  if (!bytes) return about(entry, bytes.error());
  if (strong_digest_of(*bytes) == entry.frame_digest) return bytes;
  return about(entry, {ErrorCode::kDamaged,
                       "its bytes do not have the digest that the index gives them", ""});
}

Result<std::vector<std::byte>> Bundle::encoded(const BundleEntry& entry) const {
  const auto compressed = frame(entry);
  if (!compressed) return compressed.error();
  auto bytes = decompress(*compressed, entry.object_bytes);
  if (!bytes) return about(entry, bytes.error());
  return bytes;
}

Result<Object> Bundle::object(const BundleEntry& entry) const {
  const auto bytes = encoded(entry);
  if (!bytes) return bytes.error();
  auto object = decode(*bytes);
  if (!object) return about(entry, object.error());
  if (object->key.key == entry.key) return object;
  return about(entry, {ErrorCode::kDamaged, "the object is named " + object->key.key.hex(), ""});
}

Result<StoredHead> Bundle::object_head(const BundleEntry& entry) const {
  const auto compressed = frame(entry);
  if (!compressed) return compressed.error();
  const auto start = decompress_front(*compressed, entry.object_bytes, kObjectHeaderBytes);
  if (!start) return about(entry, start.error());
  const auto header = decode_header(*start);
  if (!header) return about(entry, header.error());
  const auto bytes = decompress_front(*compressed, entry.object_bytes,
                                      static_cast<std::size_t>(header->payload_offset));
  if (!bytes) return about(entry, bytes.error());
  auto object = decode_head(*bytes);
  if (!object) return about(entry, object.error());
  if (object->key.key == entry.key && header->file_bytes == entry.object_bytes) {
    return StoredHead{std::move(*object), *header};
  }
  return about(entry,
               {ErrorCode::kDamaged,
                "the object is named " + object->key.key.hex() + " or has another length", ""});
}

}  // namespace broach::cache
