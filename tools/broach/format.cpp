#include "tools/broach/format.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

namespace broach::tool {
namespace {

std::size_t width_of(std::string_view text) {
  // UTF-8 continuation bytes take no column of their own.
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void append_cell(std::string& line, std::string_view cell, std::size_t width, Table::Align align) {
  const std::string blanks(width - std::min(width, width_of(cell)), ' ');
  if (align == Table::Align::kRight) line += blanks;
  line += cell;
  if (align == Table::Align::kLeft) line += blanks;
}

}  // namespace

Table& Table::column(std::string title, Align align) {
  columns_.push_back({std::move(title), align});
  return *this;
}

Table& Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
  return *this;
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = width_of(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c]));
    widths.push_back(width);
  }
  std::string text;
  const auto append_line = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line += "  ";
      append_cell(line, cell_of(c), widths[c], columns_[c].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  append_line([&](std::size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_) {
    append_line([&](std::size_t c) -> const std::string& { return row[c]; });
  }
  return text;
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would print as "1024.0".
  for (; value >= 1023.95 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string duration_text(double seconds) {
  if (!(seconds > 0)) return "0 s";
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string time_text(std::int64_t unix_ms) {
  if (unix_ms == 0) return "-";
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return fmt::format("{} ms", unix_ms);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string number_text(const std::optional<std::uint32_t>& number) {
  return number ? fmt::format("{}", *number) : "-";
}

std::string count_text(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace broach::tool
