#include "cache/bundle_format.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "cache/object.hpp"
#include "cache/object_source.hpp"
#include "cache/wire.hpp"

namespace broach::cache {
namespace {

// A zstd skippable frame, so that zstd's own tools read a bundle as its objects in a row.
constexpr std::uint32_t kSkippable = 0x184D2A5B;
constexpr std::size_t kSkippableHeadBytes = 8;

constexpr std::string_view kMagic = "BROACHBN";

// A name's length, the shortest name, two lengths and a digest.
constexpr std::size_t kLeastEntryBytes = 4 + 0 + 8 + 8 + sizeof(StrongDigest);

Error damaged(std::string what) { return Error{ErrorCode::kDamaged, std::move(what), ""}; }

Error beyond(std::string what) { return Error{ErrorCode::kLimitExceeded, std::move(what), ""}; }

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void append(std::string& out, const StrongDigest& digest) {
  out.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

StrongDigest take_digest(Reader& reader) {
  StrongDigest digest{};
  if (const auto bytes = reader.bytes(digest.size())) {
    std::transform(bytes->begin(), bytes->end(), digest.begin(),
                   [](char c) { return static_cast<std::uint8_t>(c); });
  }
  return digest;
}

// The name as text that is safe to print, whatever it holds.
std::string shown(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 80)) {
    out += c >= 0x20 && c != 0x7f ? std::string(1, c)
                                  : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return name.size() > 80 ? out + "…" : out;
}

// An entry may be named for its key's place and nothing else, so that no name leads elsewhere.
Result<Key> key_of_name(std::string_view name, std::uint64_t place) {
  const std::size_t slash = name.rfind('/');
  const auto key = Key::from_hex(slash == std::string_view::npos ? name : name.substr(slash + 1));
  if (key && object_name(*key) == name) return *key;
  const bool climbs = name.starts_with('/') || name.find("..") != std::string_view::npos;
  return Error{
      ErrorCode::kDenied,
      fmt::format("entry {} is named \"{}\", which {}; a name is objects/<2 "
                  "digits>/<the key's 32 digits>",
                  place, shown(name), climbs ? "climbs out of the cache" : "is no object's"),
      "name"};
}

Result<BundleEntry> take_entry(Reader& reader, std::uint64_t place) {
  const auto length = reader.u32();
  const auto name = length ? reader.bytes(*length) : std::nullopt;
  const auto frame_bytes = name ? reader.u64() : std::nullopt;
  const auto object_bytes = frame_bytes ? reader.u64() : std::nullopt;
  BundleEntry entry;
  const std::size_t before = reader.offset();
  entry.frame_digest = take_digest(reader);
  if (!object_bytes || reader.offset() != before + entry.frame_digest.size()) {
    return damaged(fmt::format("entry {} of the index is cut short", place));
  }
  const auto key = key_of_name(*name, place);
  if (!key) return key.error();
  entry.key = *key;
  entry.frame_bytes = *frame_bytes;
  entry.object_bytes = *object_bytes;
  if (auto fine = check_claims(entry); !fine) return fine.error();
  return entry;
}

// Frames fill the rest of the file, one after another, in the order of the keys.
Result<std::vector<BundleEntry>> take_entries(std::string_view index, const BundleHead& head) {
  if (head.entries > index.size() / kLeastEntryBytes) {
    return damaged(
        fmt::format("{} entries do not fit into an index of {} bytes", head.entries, index.size()));
  }
  std::vector<BundleEntry> entries;
  entries.reserve(static_cast<std::size_t>(head.entries));
  Reader reader(index);
  std::uint64_t offset = head.front_bytes();
  std::uint64_t object_bytes = 0;
  for (std::uint64_t place = 0; place < head.entries; ++place) {
    auto entry = take_entry(reader, place);
    if (!entry) return entry.error();
    if (!entries.empty() && entries.back().key == entry->key) {
      return damaged(object_name(entry->key) + " occurs twice in the index");
    }
    if (!entries.empty() && entry->key < entries.back().key) {
      return damaged(object_name(entry->key) + " is out of order in the index");
    }
    entry->offset = offset;
    offset += entry->frame_bytes;
    object_bytes += entry->object_bytes;
    entries.push_back(std::move(*entry));
  }
  if (!reader.at_end()) return damaged("the index is longer than its entries");
  if (offset != head.file_bytes || object_bytes != head.object_bytes) {
    return damaged("the index's lengths do not add up to the head's");
  }
  return entries;
}

}  // namespace

Result<void> check_claims(const BundleEntry& entry) {
  const std::string name = object_name(entry.key);
  if (entry.object_bytes > kMaxObjectBytes || entry.frame_bytes > kMaxObjectBytes) {
    return beyond(fmt::format("{} claims {} bytes in a frame of {}; no object has more than {}",
                              name, entry.object_bytes, entry.frame_bytes, kMaxObjectBytes));
  }
  if (entry.object_bytes > kAlwaysAllowedObjectBytes &&
      entry.object_bytes / kMaxBundleRatio > entry.frame_bytes) {
    return beyond(
        fmt::format("{} claims {} bytes from a frame of {}: more than {} to 1 is a "
                    "decompression bomb",
                    name, entry.object_bytes, entry.frame_bytes, kMaxBundleRatio));
  }
  if (entry.object_bytes < kObjectHeaderBytes || entry.frame_bytes == 0) {
    return damaged(name + " is too short for an object");
  }
  return {};
}

std::uint64_t BundleHead::front_bytes() const {
  return kBundleHeadBytes + index_bytes + signature_bytes;
}

std::span<const std::byte> signed_part(std::span<const std::byte> front, const BundleHead& head) {
  return front.first(static_cast<std::size_t>(kBundleHeadBytes + head.index_bytes));
}

std::string encode_front(std::span<const BundleEntry> entries, const SecretKey* signer) {
  std::string index;
  BundleHead head;
  for (const BundleEntry& entry : entries) {
    const std::string name = object_name(entry.key);
    append_u32(index, static_cast<std::uint32_t>(name.size()));
    index += name;
    append_u64(index, entry.frame_bytes);
    append_u64(index, entry.object_bytes);
    append(index, entry.frame_digest);
    head.object_bytes += entry.object_bytes;
    head.file_bytes += entry.frame_bytes;
  }
  head.index_bytes = index.size();
  head.signature_bytes = signer == nullptr ? 0 : kSignatureBytes;
  head.file_bytes += head.front_bytes();

  std::string out;
  append_u32(out, kSkippable);
  append_u32(out, static_cast<std::uint32_t>(head.front_bytes() - kSkippableHeadBytes));
  out += kMagic;
  append_u32(out, kBundleFormatVersion);
  append_u32(out, ~kBundleFormatVersion);
  append_u64(out, head.file_bytes);
  append_u64(out, head.index_bytes);
  append_u64(out, entries.size());
  append_u64(out, head.object_bytes);
  append_u64(out, head.signature_bytes);
  append(out, strong_digest_of(std::as_bytes(std::span(index))));
  out += index;
  if (signer != nullptr) {
    const auto signature = encode(signer->sign(Signed::kBundle, std::as_bytes(std::span(out))));
    out += text_of(signature);
  }
  return out;
}

Result<BundleHead> decode_bundle_head(std::span<const std::byte> bytes) {
  if (bytes.size() < kBundleHeadBytes) {
    return damaged(fmt::format("a bundle has at least {} bytes; this file has {}", kBundleHeadBytes,
                               bytes.size()));
  }
  Reader reader(text_of(bytes.first(kBundleHeadBytes)));
  const auto skippable = reader.u32();
  const auto skipped = reader.u32();
  if (skippable != kSkippable || reader.bytes(kMagic.size()) != kMagic) {
    return damaged("the magic number is not a bundle's");
  }
  const std::uint32_t version = reader.u32().value_or(0);
  if (reader.u32() != ~version) return damaged("the format version is garbled");
  if (version != kBundleFormatVersion) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("the bundle has format version {}; this build reads version {}",
                             version, kBundleFormatVersion),
                 "", Reason::kNewerFormat};
  }
  BundleHead head;
  head.file_bytes = reader.u64().value_or(0);
  head.index_bytes = reader.u64().value_or(0);
  head.entries = reader.u64().value_or(0);
  head.object_bytes = reader.u64().value_or(0);
  head.signature_bytes = reader.u64().value_or(0);
  head.index_digest = take_digest(reader);
  if (head.entries > kMaxBundleEntries || head.index_bytes > kMaxBundleIndexBytes) {
    return beyond(
        fmt::format("it claims {} entries and an index of {} bytes; a bundle has at most "
                    "{} and {}",
                    head.entries, head.index_bytes, kMaxBundleEntries, kMaxBundleIndexBytes));
  }
  if (head.object_bytes > kMaxBundleObjectBytes) {
    return beyond(fmt::format("it claims {} bytes of objects; a bundle has at most {}",
                              head.object_bytes, kMaxBundleObjectBytes));
  }
  const bool fits = (head.signature_bytes == 0 || head.signature_bytes == kSignatureBytes) &&
                    skipped == head.front_bytes() - kSkippableHeadBytes &&
                    head.file_bytes >= head.front_bytes();
  if (!fits) return damaged("the head's lengths do not fit together");
  return head;
}

Result<BundleFront> decode_bundle_front(std::span<const std::byte> bytes) {
  const auto head = decode_bundle_head(bytes);
  if (!head) return head.error();
  if (bytes.size() != head->front_bytes()) {
    return damaged(fmt::format("the head and index have {} bytes; there are {}",
                               head->front_bytes(), bytes.size()));
  }
  const auto index = signed_part(bytes, *head).subspan(kBundleHeadBytes);
  if (strong_digest_of(index) != head->index_digest) {
    return damaged("the index's digest does not match");
  }
  auto entries = take_entries(text_of(index), *head);
  if (!entries) return entries.error();
  BundleFront front{*head, std::move(*entries), std::nullopt};
  if (head->signature_bytes != 0) {
    auto signature = decode_signature(bytes.last(kSignatureBytes));
    if (!signature) return signature.error();
    front.signature = *signature;
  }
  return front;
}

}  // namespace broach::cache
