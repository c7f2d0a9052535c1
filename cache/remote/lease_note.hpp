#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace broach::cache::remote {

/// What the holder of a lease writes for those who wait, and how they tell one holder from another.
struct LeaseNote {
  std::string token;
  std::string host;
  std::int64_t pid = 0;
  std::int64_t since_unix_ms = 0;
  std::string stage;

  /// This process, from now on, with a token of its own.
  static LeaseNote own(std::string_view stage);

  bool operator==(const LeaseNote&) const = default;
};

/// The stage of a holder that will not store what it makes: those who wait go on by themselves.
inline constexpr std::string_view kNotStoredStage = "not_stored";

/// Text as a note holds it, which sets its parts apart by spaces: one word.
std::string note_word(std::string_view text);

std::string to_text(const LeaseNote& note);

/// Absent for a text that no holder writes.
std::optional<LeaseNote> parse_lease_note(const std::string& text);

}  // namespace broach::cache::remote
