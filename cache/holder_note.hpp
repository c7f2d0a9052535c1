#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace broach::cache {

/// What the holder of a key's lock writes into the lock's file for those who wait.
struct HolderNote {
  std::int64_t pid = 0;
  std::uint64_t pid_namespace = 0;  ///< Process numbers mean nothing in another one.
  std::int64_t since_unix_ms = 0;
  std::string stage;  ///< One line.

  bool operator==(const HolderNote&) const = default;
};

std::string to_text(const HolderNote& note);

/// Absent for a text that no holder writes.
std::optional<HolderNote> parse_holder_note(std::string_view text);

}  // namespace broach::cache
