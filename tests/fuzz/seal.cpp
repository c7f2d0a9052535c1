#include "tests/fuzz/seal.hpp"

#include <algorithm>
#include <string_view>

#include "cache/digest.hpp"
#include "cache/key.hpp"
#include "cache/object.hpp"
#include "cache/wire.hpp"

namespace broach::fuzz {
namespace {

constexpr std::size_t kPayloadOffsetAt = 24;
constexpr std::size_t kMetadataDigestAt = 32;
constexpr std::size_t kMetadataDigestEnd = 48;

std::string_view text_of(const cache::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

cache::Key key_of_first_section(std::string_view metadata) {
  cache::Reader reader(metadata);
  const auto tag = reader.bytes(4);
  const auto flags = reader.u32();
  const auto stream = reader.prefixed();
  return tag && flags && stream ? cache::key_of_stream(*stream) : cache::Key{};
}

}  // namespace

std::string seal(const std::uint8_t* data, std::size_t size) {
  std::string object(reinterpret_cast<const char*>(data), size);
  object.resize(std::max(size, cache::kObjectHeaderBytes));
  cache::Reader claimed(std::string_view(object).substr(kPayloadOffsetAt, 8));
  const std::uint64_t offset = std::clamp<std::uint64_t>(claimed.u64().value_or(0),
                                                         cache::kObjectHeaderBytes, object.size());

  const std::string_view all = object;
  const std::string_view metadata =
      all.substr(cache::kObjectHeaderBytes, offset - cache::kObjectHeaderBytes);
  std::string head("BROACH\r\n");
  cache::append_u32(head, cache::kObjectFormatVersion);
  cache::append_u32(head, ~cache::kObjectFormatVersion);
  cache::append_u64(head, object.size());
  cache::append_u64(head, offset);
  std::string rest(text_of(cache::digest_of(all.substr(offset))));
  rest.append(text_of(key_of_first_section(metadata).bytes));
  rest.append(metadata);
  const cache::Digest digest = cache::digest_of(head, rest);
  object.replace(0, kMetadataDigestAt, head);
  object.replace(kMetadataDigestAt, digest.size(), text_of(digest));
  object.replace(kMetadataDigestEnd, 2 * digest.size(), rest, 0, 2 * digest.size());
  return object;
}

}  // namespace broach::fuzz
