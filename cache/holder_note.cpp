#include "cache/holder_note.hpp"

#include <charconv>

#include <fmt/core.h>

namespace broach::cache {
namespace {

// Takes a number and the space behind it.
template <class Number>
bool take(std::string_view& text, Number& into) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, into);
  if (error != std::errc{} || stop == end || *stop != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()) + 1);
  return true;
}

}  // namespace

std::string to_text(const HolderNote& note) {
  return fmt::format("{} {} {} {}\n", note.pid, note.pid_namespace, note.since_unix_ms, note.stage);
}

std::optional<HolderNote> parse_holder_note(std::string_view text) {
  HolderNote note;
  if (!take(text, note.pid) || !take(text, note.pid_namespace) || !take(text, note.since_unix_ms)) {
    return std::nullopt;
  }
  // A time before all times has no distance to now.
  if (note.pid < 0 || note.since_unix_ms < 0) return std::nullopt;
  note.stage = text.substr(0, text.find('\n'));
  return note;
}

}  // namespace broach::cache
