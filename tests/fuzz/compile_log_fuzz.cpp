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
  // Lines that quote the source say nothing about memory.
  const std::string source = "1 | out of memory";
  if (ran_out_of_memory(source) || !ran_out_of_memory(source.substr(4))) std::abort();
  (void)ran_out_of_memory(log);
  return 0;
}
