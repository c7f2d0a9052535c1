#include "tools/broach/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "tools/broach/format.hpp"

namespace broach::tool {
namespace {

constexpr std::size_t kBarCells = 24;
constexpr std::string_view kClearLine = "\r\x1b[K";

// What cannot be written changes nothing: a lost line is no reason to stop.
void write(std::FILE* stream, const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stream));
  static_cast<void>(std::fflush(stream));
}

std::size_t columns_of(std::FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

ProgressStyle progress_style_for(std::FILE* stream, std::string_view terminal_name) {
  const bool can_redraw =
      isatty(fileno(stream)) == 1 && !terminal_name.empty() && terminal_name != "dumb";
  return can_redraw ? ProgressStyle::kBar : ProgressStyle::kLines;
}

Progress::Progress(std::FILE* stream, ProgressStyle style, std::size_t total,
                   Clock::time_point start)
    : stream_(stream), style_(style), total_(total), start_(start) {}

Progress::~Progress() {
  if (drawn_) write(stream_, std::string(kClearLine));
}

std::string Progress::bar(std::string_view line, Clock::time_point now, std::size_t columns) const {
  const std::size_t filled = total_ == 0 ? kBarCells : kBarCells * done_ / total_;
  std::string text = fmt::format("[{}{}] {}/{}", std::string(filled, '#'),
                                 std::string(kBarCells - filled, '.'), done_, total_);
  if (done_ > 0 && done_ < total_) {
    const std::chrono::duration<double> elapsed = now - start_;
    const double left =
        elapsed.count() * static_cast<double>(total_ - done_) / static_cast<double>(done_);
    text += fmt::format("  {} left", duration_text(left));
  }
  text += fmt::format("  {}", line);
  // A line that wraps cannot be redrawn in place; the last column makes some terminals wrap.
  return text.substr(0, std::max<std::size_t>(columns, 2) - 1);
}

void Progress::step(std::string_view line, Clock::time_point now) {
  done_ = std::min(done_ + 1, total_);
  switch (style_) {
    case ProgressStyle::kQuiet:
      return;
    case ProgressStyle::kLines:
      write(stream_, fmt::format("{:>{}}/{}  {}\n", done_, fmt::formatted_size("{}", total_),
                                 total_, one_line(line)));
      break;
    case ProgressStyle::kBar:
      write(stream_,
            fmt::format("{}{}", kClearLine, bar(one_line(line), now, columns_of(stream_))));
      drawn_ = true;
      break;
  }
}

void Progress::keep(std::string_view line) {
  write(stream_, fmt::format("{}{}\n", drawn_ ? kClearLine : std::string_view(), one_line(line)));
  drawn_ = false;
}

}  // namespace broach::tool
