#include "tools/contract/harness/digests.hpp"

#include <algorithm>

#include "cache/key.hpp"

namespace broach::contract {

std::string digest_of(std::span<const std::byte> outputs) {
  cache::KeyBuilder digest;
  digest.field("outputs",
               std::string_view(reinterpret_cast<const char*>(outputs.data()), outputs.size()));
  return digest.finish().key.hex();
}

PinnedDigests::PinnedDigests(std::string_view text) {
  constexpr std::size_t kDigits = 32;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.size() > kDigits + 2) {
      lines_.push_back({line.substr(0, kDigits), line.substr(kDigits + 2)});
    }
    at = end + 1;
  }
}

std::string_view PinnedDigests::of(std::string_view case_name) const noexcept {
  const auto found = std::find_if(lines_.begin(), lines_.end(),
                                  [&](const Line& line) { return line.name == case_name; });
  return found == lines_.end() ? std::string_view{} : found->digest;
}

std::vector<std::string_view> PinnedDigests::names() const {
  std::vector<std::string_view> names;
  for (const Line& line : lines_) names.push_back(line.name);
  return names;
}

}  // namespace broach::contract
