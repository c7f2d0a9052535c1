#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace broach::tool {

/// Columns of text, each as wide as its widest cell.
///
/// Units:   widths count characters; cells are UTF-8.
class Table {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };

  Table& column(std::string title, Align align = Align::kLeft);
  /// Cells that are missing at the end are empty; cells past the last column are dropped.
  Table& row(std::vector<std::string> cells);

  bool empty() const noexcept { return rows_.empty(); }
  /// A line of titles, then a line a row; no line ends in a blank.
  std::string text() const;

 private:
  struct Column {
    std::string title;
    Align align;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// "912 B", "1.5 KiB", "3.0 GiB".
std::string bytes_text(std::uint64_t bytes);

/// "0.04 s", "12.3 s", "2 min 05 s", "3 h 07 min".
std::string duration_text(double seconds);

/// "2026-01-31 14:05:09Z"; "-" for 0.
std::string time_text(std::int64_t unix_ms);

/// The number, or "-" where there is none.
std::string number_text(const std::optional<std::uint32_t>& number);

/// "1 shape", "3 shapes".
std::string count_text(std::uint64_t count, std::string_view noun);

/// The text with line breaks and control characters shown as escapes, so that it stays one line.
std::string one_line(std::string_view text);

}  // namespace broach::tool
