#include "cache/wire.hpp"

#include <charconv>

namespace broach::cache {
namespace {

template <class Number>
void append_little_endian(std::string& out, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }
}

template <class Number>
Number little_endian(std::string_view bytes) noexcept {
  Number value = 0;
  for (std::size_t i = sizeof value; i-- > 0;) {
    value = static_cast<Number>((value << 8) | static_cast<std::uint8_t>(bytes[i]));
  }
  return value;
}

}  // namespace

void append_u32(std::string& out, std::uint32_t value) { append_little_endian(out, value); }
void append_u64(std::string& out, std::uint64_t value) { append_little_endian(out, value); }

void append_field(std::string& out, std::string_view label, std::string_view value) {
  append_u64(out, label.size());
  out.append(label);
  append_u64(out, value.size());
  out.append(value);
}

void append_field(std::string& out, std::string_view label, std::int64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  append_field(out, label, std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

std::optional<std::string_view> Reader::bytes(std::uint64_t count) noexcept {
  if (count > bytes_.size() - offset_) return std::nullopt;
  const std::string_view taken = bytes_.substr(offset_, static_cast<std::size_t>(count));
  offset_ += taken.size();
  return taken;
}

std::optional<std::uint32_t> Reader::u32() noexcept {
  const auto taken = bytes(4);
  if (!taken) return std::nullopt;
  return little_endian<std::uint32_t>(*taken);
}

std::optional<std::uint64_t> Reader::u64() noexcept {
  const auto taken = bytes(8);
  if (!taken) return std::nullopt;
  return little_endian<std::uint64_t>(*taken);
}

std::optional<std::string_view> Reader::prefixed() noexcept {
  const std::size_t start = offset_;
  const auto length = u64();
  const auto taken = length ? bytes(*length) : std::nullopt;
  if (!taken) offset_ = start;
  return taken;
}

std::optional<std::int64_t> parse_number(std::string_view digits) noexcept {
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace broach::cache
