#include "cache/limit_fields.hpp"

#include <charconv>
#include <system_error>

namespace broach::cache {
namespace {

// A kernel's parameters are at most 32,764 bytes.
constexpr std::size_t kMostParameters = 32'764;

}  // namespace

std::string parameter_text(const std::vector<std::uint32_t>& bytes) {
  std::string text;
  for (const std::uint32_t size : bytes) {
    if (!text.empty()) text += ',';
    text += std::to_string(size);
  }
  return text;
}

std::optional<std::vector<std::uint32_t>> parameters_of(std::string_view text) {
  std::vector<std::uint32_t> bytes;
  while (!text.empty()) {
    std::uint32_t size = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, size);
    if (error != std::errc{} || bytes.size() == kMostParameters) return std::nullopt;
    bytes.push_back(size);
    if (at == end) break;
    if (*at != ',' || at + 1 == end) return std::nullopt;
    text = {at + 1, static_cast<std::size_t>(end - at - 1)};
  }
  return bytes;
}

}  // namespace broach::cache
