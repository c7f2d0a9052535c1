#include "cache/remote/lease_note.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <sstream>

#include <fmt/core.h>

#include "cache/file.hpp"
#include "cache/remote/printable.hpp"
#include "cache/wire.hpp"

namespace broach::cache::remote {
namespace {

std::string random_token() {
  std::random_device device;  // Not guessed by chance; nobody is kept out by it.
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "-";
  return note_word(name.data());
}

}  // namespace

LeaseNote LeaseNote::own(std::string_view stage) {
  return {random_token(), host_name(), getpid(), now_unix_ms(), note_word(stage)};
}

std::string note_word(std::string_view text) {
  std::string word(text.substr(0, 64));
  std::replace_if(
      word.begin(), word.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; }, '_');
  return word.empty() ? "-" : word;
}

std::string to_text(const LeaseNote& note) {
  return fmt::format("{} {} {} {} {}", note.token, note.host, note.pid, note.since_unix_ms,
                     note.stage);
}

std::optional<LeaseNote> parse_lease_note(const std::string& text) {
  // Others could have written it, and people are shown it.
  constexpr std::size_t kLongest = 512;
  if (text.size() > kLongest || !is_printable(text)) return std::nullopt;
  std::istringstream in(text);
  LeaseNote note;
  std::string pid_word;
  std::string since_word;
  if (!(in >> note.token >> note.host >> pid_word >> since_word >> note.stage)) return std::nullopt;
  // A number is a whole word, so that a note is no longer when it is written again. A time before
  // all times has no distance to now.
  const auto pid = parse_number(pid_word);
  const auto since = parse_number(since_word);
  if (!pid || *pid < 0 || !since || *since < 0) return std::nullopt;
  note.pid = *pid;
  note.since_unix_ms = *since;
  return note;
}

}  // namespace broach::cache::remote
