// A bundle's head and index. The digest over the index is put right first: no mutation would find
// it, and whoever writes a bundle can.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cache/bundle_format.hpp"
#include "tests/fuzz/target.hpp"

BROACH_FUZZ_TARGET(bundle) {
  using namespace broach::cache;
  std::vector<std::byte> bytes(size);
  std::transform(data, data + size, bytes.begin(), [](std::uint8_t b) { return std::byte{b}; });
  if (const auto head = decode_bundle_head(bytes); head && head->front_bytes() == size) {
    const StrongDigest digest =
        strong_digest_of(signed_part(bytes, *head).subspan(kBundleHeadBytes));
    std::transform(digest.begin(), digest.end(), bytes.begin() + kBundleHeadBytes - sizeof digest,
                   [](std::uint8_t b) { return std::byte{b}; });
  }
  const auto front = decode_bundle_front(bytes);
  if (!front) return 0;
  // What is taken is what would be written, the signature apart: there is one form only.
  const std::string again = encode_front(front->entries, nullptr);
  const auto index = signed_part(bytes, front->head).subspan(kBundleHeadBytes);
  const std::string_view text(reinterpret_cast<const char*>(index.data()), index.size());
  if (std::string_view(again).substr(kBundleHeadBytes) != text) std::abort();
  std::uint64_t end = front->head.front_bytes();
  for (const BundleEntry& entry : front->entries) {
    if (entry.offset != end) std::abort();
    end += entry.frame_bytes;
  }
  if (end != front->head.file_bytes) std::abort();
  return 0;
}
