#include "tools/broach/output.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "tools/broach/format.hpp"

namespace broach::tool {
namespace {

void write(std::FILE* stream, std::string_view text) {
  // A short write is found by close(); nothing useful can be done about it here.
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stream));
}

std::string indented(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines += fmt::format("    {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

void Output::text(std::string_view text) {
  errno = 0;
  write(results_, text);
  if (write_error_ == 0 && std::ferror(results_) != 0) write_error_ = errno;
}

void Output::document(const Json& json) {
  const int indent = isatty(fileno(results_)) == 1 ? 2 : -1;
  text(json.dump(indent, ' ', false, Json::error_handler_t::replace) + '\n');
}

void Output::note(std::string_view line) {
  std::fflush(results_);
  write(messages_, fmt::format("broach: {}\n", one_line(line)));
}

ExitStatus Output::fail(const Error& error) {
  note(error.message);
  write(messages_, indented(error.detail));
  if (json()) {
    Json told = {
        {"code", name_of(error.code)}, {"message", error.message}, {"detail", error.detail}};
    if (error.reason != Reason::kNone) told["reason"] = name_of(error.reason);
    document({{"error", std::move(told)}});
  }
  return exit_status_of(error.code);
}

ExitStatus Output::close(ExitStatus status) {
  errno = 0;
  if (std::fflush(results_) == 0 && std::ferror(results_) == 0) return status;
  const int cause = write_error_ != 0 ? write_error_ : errno;
  if (cause == EPIPE) {
    // As any program ends whose reader has seen enough (`broach ls | head`).
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  write(messages_,
        fmt::format("broach: standard output could not be written{}\n",
                    cause == 0 ? std::string() : ": " + std::generic_category().message(cause)));
  return status == ExitStatus::kSuccess ? ExitStatus::kStorage : status;
}

}  // namespace broach::tool
