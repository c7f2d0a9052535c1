#include "broach/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

namespace broach {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// Reads a whole decimal number; empty text keeps `to`.
template <class Number>
void read_number(const char* name, Number& to, std::vector<std::string>& problems) {
  const std::string text = variable(name);
  if (text.empty()) return;
  const char* end = text.data() + text.size();
  Number value = 0;
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc{} && parsed.ptr == end) {
    to = value;
    return;
  }
  problems.push_back(fmt::format("{} is \"{}\"; it must be a whole number from 0 to {}", name, text,
                                 std::numeric_limits<Number>::max()));
}

void read_first_use(FirstUse& to, std::vector<std::string>& problems) {
  const std::string text = variable("BROACH_FIRST_USE");
  if (text.empty()) return;
  if (text == "wait") {
    to = FirstUse::kWait;
  } else if (text == "background") {
    to = FirstUse::kBackground;
  } else if (text == "never") {
    to = FirstUse::kNever;
  } else {
    problems.push_back(
        fmt::format("BROACH_FIRST_USE is \"{}\"; it must be wait, background or never", text));
  }
}

}  // namespace

Options Options::from_environment() {
  Options options;
  if (const std::string device = variable("BROACH_DEVICE"); !device.empty()) {
    options.device = device;
  }
  read_first_use(options.first_use, options.problems);
  if (const std::string chosen = variable("BROACH_CACHE_DIR"); !chosen.empty()) {
    options.cache_directories.push_back(chosen);
  }
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) {
    options.cache_directories.push_back(xdg + "/broach");
  }
  if (const std::string home = variable("HOME"); !home.empty() && home != "/") {
    options.cache_directories.push_back(home + "/.cache/broach");
  }
  const std::string path = variable("BROACH_CACHE_PATH");
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    if (end > at) options.read_only_caches.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  read_number("BROACH_CACHE_BYTES", options.cache_bytes, options.problems);
  read_number("BROACH_CACHE_OBJECTS", options.cache_objects, options.problems);
  options.worker = variable("BROACH_WORKER");
  options.nvrtc = variable("BROACH_NVRTC");
  options.hiprtc = variable("BROACH_HIPRTC");
  options.hiprtc_prefix = variable("BROACH_HIPRTC_PREFIX");
  options.host_compiler = variable("BROACH_CXX");
  options.search_path = variable("PATH");
  read_number("BROACH_JOBS", options.jobs, options.problems);
  read_number("BROACH_COMPILE_TIME_LIMIT", options.compile_time_limit_s, options.problems);
  read_number("BROACH_COMPILE_MEMORY_LIMIT", options.compile_memory_limit_bytes, options.problems);
  return options;
}

}  // namespace broach
