#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "broach/result.hpp"
#include "tools/broach/exit_status.hpp"

namespace broach::tool {

/// JSON whose objects keep the order in which their members were added.
using Json = nlohmann::ordered_json;

enum class Style : std::uint8_t { kHuman, kJson };

/// Where a subcommand writes: results to standard output, everything about the run to standard
/// error.
///
/// Threads: one.
class Output {
 public:
  Output(std::FILE* results, std::FILE* messages) noexcept
      : results_(results), messages_(messages) {}

  void set_style(Style style) noexcept { style_ = style; }
  Style style() const noexcept { return style_; }
  bool json() const noexcept { return style_ == Style::kJson; }

  /// Writes text as it is to standard output.
  void text(std::string_view text);

  /// Writes one document: a single line, or indented where standard output is a terminal.
  /// Bytes that are not UTF-8 are replaced, never thrown.
  void document(const Json& json);

  /// One line about the run, prefixed with the program's name.
  void note(std::string_view line);

  /// Says what went wrong: one line, then the detail indented; in JSON also `{"error": …}` on
  /// standard output, so that a script never reads nothing.
  ExitStatus fail(const Error& error);

  /// The status to leave with: kStorage, with a line that says so, when standard output took not
  /// all that was written (a full disk).
  ExitStatus close(ExitStatus status);

  std::FILE* messages() const noexcept { return messages_; }

 private:
  std::FILE* results_;
  std::FILE* messages_;
  Style style_ = Style::kHuman;
  int write_error_ = 0;  ///< Why standard output took not all of it.
};

}  // namespace broach::tool
