#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace broach::cache {

/// Appends a number, least significant byte first.
void append_u32(std::string& out, std::uint32_t value);
void append_u64(std::string& out, std::uint64_t value);

/// Appends `length(label) label length(value) value`, lengths as 8 bytes.
///
/// Source:  docs/cache_key.md ("field").
void append_field(std::string& out, std::string_view label, std::string_view value);
void append_field(std::string& out, std::string_view label, std::int64_t value);

/// Takes numbers and strings off the front of bytes that others could have written.
///
/// Errors:  an absent value: the bytes end first. Nothing is taken then.
/// Threads: one reader per thread.
class Reader {
 public:
  explicit Reader(std::string_view bytes) noexcept : bytes_(bytes) {}

  std::optional<std::uint32_t> u32() noexcept;
  std::optional<std::uint64_t> u64() noexcept;
  std::optional<std::string_view> bytes(std::uint64_t count) noexcept;
  std::optional<std::string_view> prefixed() noexcept;  ///< An 8-byte length, then that many.

  std::size_t offset() const noexcept { return offset_; }
  bool at_end() const noexcept { return offset_ == bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t offset_ = 0;
};

/// A decimal number and nothing else.
std::optional<std::int64_t> parse_number(std::string_view digits) noexcept;

}  // namespace broach::cache
