#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/bundle_format.hpp"
#include "cache/frame.hpp"
#include "cache/signature.hpp"
#include "cache/wire.hpp"
#include "tests/cache/samples.hpp"
#include "tests/cache/signing.hpp"

namespace broach::cache::test {

/// A bundle written by hand from docs/cache_format.md, so that it can lie where the library's own
/// writer cannot.
struct MadeBundle {
  struct Entry {
    std::string name;
    std::string frame;
    std::uint64_t object_bytes = 0;
    std::optional<std::uint64_t> frame_bytes;  ///< What is claimed, where it is not the truth.
  };

  std::vector<Entry> entries;
  std::optional<std::uint64_t> claimed_entries;
  std::optional<std::uint64_t> claimed_object_bytes;
  std::optional<std::uint64_t> claimed_index_bytes;
  std::uint32_t version = 1;

  MadeBundle& add(const Object& object) {
    const auto bytes = encode(object);
    const auto frame = FrameCompressor().compress(bytes);
    entries.push_back({object_name(object.key.key),
                       {reinterpret_cast<const char*>(frame->data()), frame->size()},
                       bytes.size(),
                       std::nullopt});
    return *this;
  }

  std::string bytes(const SecretKey* signer) const {
    std::string index;
    std::string frames;
    std::uint64_t object_bytes = 0;
    for (const Entry& entry : entries) {
      append_u32(index, static_cast<std::uint32_t>(entry.name.size()));
      index += entry.name;
      append_u64(index, entry.frame_bytes.value_or(entry.frame.size()));
      append_u64(index, entry.object_bytes);
      append(index, strong_digest_of(std::as_bytes(std::span(entry.frame))));
      frames += entry.frame;
      object_bytes += entry.object_bytes;
    }
    const std::uint64_t signature_bytes = signer == nullptr ? 0 : kSignatureBytes;
    const std::uint64_t index_bytes = claimed_index_bytes.value_or(index.size());
    const std::uint64_t front_bytes = 96 + index_bytes + signature_bytes;
    std::string out;
    append_u32(out, 0x184D2A5B);
    append_u32(out, static_cast<std::uint32_t>(front_bytes - 8));
    out += "BROACHBN";
    append_u32(out, version);
    append_u32(out, ~version);
    append_u64(out, front_bytes + frames.size());
    append_u64(out, index_bytes);
    append_u64(out, claimed_entries.value_or(entries.size()));
    append_u64(out, claimed_object_bytes.value_or(object_bytes));
    append_u64(out, signature_bytes);
    append(out, strong_digest_of(std::as_bytes(std::span(index))));
    out += index;
    if (signer != nullptr) {
      const auto signature = encode(signer->sign(Signed::kBundle, std::as_bytes(std::span(out))));
      out.append(reinterpret_cast<const char*>(signature.data()), signature.size());
    }
    return out + frames;
  }

 private:
  static void append(std::string& out, const StrongDigest& digest) {
    out.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
};

/// The sample objects of these names, in the order of their keys.
inline std::vector<Object> sorted_samples(const std::vector<std::string>& names) {
  std::vector<Object> objects;
  for (const std::string& name : names) objects.push_back(sample_object(name));
  std::sort(objects.begin(), objects.end(),
            [](const Object& a, const Object& b) { return a.key.key < b.key.key; });
  return objects;
}

}  // namespace broach::cache::test
