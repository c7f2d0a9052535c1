#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace broach::tool {

enum class ProgressStyle : std::uint8_t {
  kBar,    ///< One line redrawn in place, for a terminal.
  kLines,  ///< A line a step, for a log.
  kQuiet,  ///< Nothing.
};

/// kBar on a terminal that can be redrawn, else kLines.
ProgressStyle progress_style_for(std::FILE* stream, std::string_view terminal_name);

/// How far a run of many steps is, with the time that is left at the speed so far.
///
/// Threads: one; the caller serialises.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  Progress(std::FILE* stream, ProgressStyle style, std::size_t total, Clock::time_point start);
  /// Clears the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more step is done: `line` says which and how.
  void step(std::string_view line, Clock::time_point now);
  /// A line that stays, above the bar.
  void keep(std::string_view line);

  /// The bar as it would be drawn on a terminal of `columns`, never wider.
  std::string bar(std::string_view line, Clock::time_point now, std::size_t columns) const;

 private:
  std::FILE* stream_;
  ProgressStyle style_;
  std::size_t total_;
  std::size_t done_ = 0;
  Clock::time_point start_;
  bool drawn_ = false;
};

}  // namespace broach::tool
