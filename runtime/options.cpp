#include "broach/options.hpp"

#include <algorithm>
#include <cstdlib>

namespace broach {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::uint64_t number(const char* name) {
  const std::string text = variable(name);
  return text.empty() ? 0 : std::strtoull(text.c_str(), nullptr, 10);
}

}  // namespace

Options Options::from_environment() {
  Options options;
  if (const std::string device = variable("BROACH_DEVICE"); !device.empty()) {
    options.device = device;
  }
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
  options.cache_bytes = number("BROACH_CACHE_BYTES");
  options.cache_objects = number("BROACH_CACHE_OBJECTS");
  options.worker = variable("BROACH_WORKER");
  options.nvrtc = variable("BROACH_NVRTC");
  options.hiprtc = variable("BROACH_HIPRTC");
  options.hiprtc_prefix = variable("BROACH_HIPRTC_PREFIX");
  options.host_compiler = variable("BROACH_CXX");
  options.search_path = variable("PATH");
  options.jobs = static_cast<std::uint32_t>(number("BROACH_JOBS"));
  options.compile_time_limit_s = static_cast<std::uint32_t>(number("BROACH_COMPILE_TIME_LIMIT"));
  options.compile_memory_limit_bytes = number("BROACH_COMPILE_MEMORY_LIMIT");
  return options;
}

}  // namespace broach
