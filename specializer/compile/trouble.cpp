#include "specializer/compile/trouble.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace broach::specializer::rtc {
namespace {

// "Loop in" is what NVRTC's front end says when it runs out while reporting that it ran out.
constexpr std::array<std::string_view, 6> kMemorySigns = {
    "out of memory", "Out of memory",          "memory exhausted",
    "bad_alloc",     "Cannot allocate memory", "Loop in catastrophic error processing"};

// strerror's words for what the same compile does not meet on a machine that is well.
constexpr std::array<std::string_view, 14> kMachineSigns = {"No space left on device",
                                                            "no space left on device",
                                                            "Disk quota exceeded",
                                                            "Too many open files",
                                                            "Too many links",
                                                            "Resource temporarily unavailable",
                                                            "resource temporarily unavailable",
                                                            "Read-only file system",
                                                            "Input/output error",
                                                            "Stale file handle",
                                                            "File too large",
                                                            "Text file busy",
                                                            "annot create temporary file",
                                                            "nable to make temporary file"};

bool has_one(std::string_view line, std::span<const std::string_view> signs) {
  return std::any_of(signs.begin(), signs.end(), [&](std::string_view sign) {
    return line.find(sign) != std::string_view::npos;
  });
}

}  // namespace

Trouble trouble_in(std::string_view log) {
  Trouble found = Trouble::kNone;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (line.find(" | ") != std::string_view::npos) continue;
    if (has_one(line, kMemorySigns)) return Trouble::kMemory;
    if (has_one(line, kMachineSigns)) found = Trouble::kMachine;
  }
  return found;
}

}  // namespace broach::specializer::rtc
