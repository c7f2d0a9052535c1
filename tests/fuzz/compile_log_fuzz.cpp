#include <cstdlib>
#include <string>

#include "tests/fuzz/target.hpp"
#include "tools/rtc/log.hpp"

// What a compiler prints: the complaint that is shown of it stands in it, on one line.
BROACH_FUZZ_TARGET(compile_log) {
  using namespace broach::rtc;
  const std::string_view log = broach::fuzz::as_text(data, size);
  const std::string complaint = first_complaint(log);
  if (complaint.empty() || complaint.find('\n') != std::string::npos) std::abort();
  const bool quoted = log.find(complaint) != std::string_view::npos;
  if (!quoted && log.find_first_not_of('\n') != std::string_view::npos) std::abort();
  // What is short enough is handed on as it is; the rest ends in one more line.
  const std::string bounded = bounded_log(std::string(log));
  if (log.size() <= kMaxLogBytes && bounded != log) std::abort();
  if (bounded.size() > kMaxLogBytes + 256) std::abort();
  return 0;
}
