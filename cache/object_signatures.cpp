#include "cache/object_signatures.hpp"

#include <unistd.h>

#include <fmt/core.h>

#include "cache/file.hpp"

namespace broach::cache {
namespace {

constexpr std::string_view kSignatures = "signatures";
constexpr std::string_view kScratch = "tmp";

}  // namespace

std::string ObjectSignatures::path_of(const Key& key) const {
  const std::string hex = key.hex();
  return (directory_.path() / kSignatures / hex.substr(0, 2) / hex).string();
}

Result<std::shared_ptr<const Fd>> ObjectSignatures::shelf(const Key& key, IfMissing if_missing) {
  return directory_.folder(fmt::format("{}/{:02x}", kSignatures, key.bytes[0]), if_missing);
}

Result<Signature> ObjectSignatures::read(const Key& key) {
  const std::string path = path_of(key);
  const auto folder = shelf(key, IfMissing::kFail);
  if (!folder) return folder.error();
  const auto file = open_file((*folder)->get(), key.hex(), path, directory_.trust());
  if (!file) return file.error();
  if (file->bytes != kSignatureBytes) {
    return Error{
        ErrorCode::kDamaged,
        fmt::format("{} has {} bytes; a signature has {}", path, file->bytes, kSignatureBytes), ""};
  }
  const auto bytes = read_bytes(file->fd, 0, kSignatureBytes, path);
  if (!bytes) return bytes.error();
  return decode_signature(*bytes);
}

Result<void> ObjectSignatures::write(const Key& key, const Signature& signature) {
  const auto scratch = directory_.folder(kScratch, IfMissing::kCreate);
  if (!scratch) return scratch.error();
  const auto folder = shelf(key, IfMissing::kCreate);
  if (!folder) return folder.error();
  return publish_file((*scratch)->get(), (*folder)->get(), key.hex(), encode(signature),
                      path_of(key), directory_.file_mode());
}

void ObjectSignatures::remove(const Key& key) {
  const auto folder = shelf(key, IfMissing::kFail);
  if (folder) (void)unlinkat((*folder)->get(), key.hex().c_str(), 0);
}

}  // namespace broach::cache
