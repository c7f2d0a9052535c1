#include "broach/options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace broach {
namespace {

// A privileged program (setuid, setgid, file capabilities) was started by somebody with fewer
// rights, who chose its environment: then every variable reads as if it were not set.
std::string variable(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Where compilers are looked for then.
constexpr const char* kFixedSearchPath = "/usr/local/bin:/usr/bin:/bin";

/// The parts of a colon-separated list that are not empty.
std::vector<std::string> path_list(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(':', at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// Where the keys lie whose signatures make others' binaries usable: the user's own, then the
/// system's, as an image brings them.
std::vector<std::string> trusted_key_directories(const std::string& home) {
  if (const std::string chosen = variable("BROACH_TRUSTED_KEYS"); !chosen.empty()) {
    return path_list(chosen);
  }
  std::vector<std::string> directories;
  if (const std::string xdg = variable("XDG_CONFIG_HOME"); !xdg.empty()) {
    directories.push_back(xdg + "/broach/trusted_keys");
  } else if (!home.empty() && home != "/") {
    directories.push_back(home + "/.config/broach/trusted_keys");
  }
  directories.push_back("/etc/broach/trusted_keys");
  return directories;
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

void read_use(RemoteUse& to, std::vector<std::string>& problems) {
  const std::string text = variable("BROACH_REMOTE_MODE");
  if (text.empty() || text == "read-write") return;
  if (text == "read-only") {
    to = RemoteUse::kReadOnly;
  } else {
    problems.push_back(
        fmt::format("BROACH_REMOTE_MODE is \"{}\"; it must be read-write or read-only", text));
  }
}

std::vector<RemoteCache> read_remotes(std::vector<std::string>& problems) {
  RemoteCache common;
  common.secret = variable("BROACH_REMOTE_TOKEN");
  common.secret_file = variable("BROACH_REMOTE_TOKEN_FILE");
  common.certificates = variable("BROACH_REMOTE_CA");
  read_use(common.use, problems);
  read_number("BROACH_REMOTE_TIMEOUT_MS", common.first_byte_ms, problems);
  std::vector<RemoteCache> remotes;
  std::istringstream urls(variable("BROACH_REMOTE"));
  for (std::string url; urls >> url;) {
    remotes.push_back(common);
    remotes.back().url = url;
  }
  if (remotes.size() > 1 && !(common.secret.empty() && common.secret_file.empty())) {
    problems.push_back(
        fmt::format("BROACH_REMOTE names {} remotes and BROACH_REMOTE_TOKEN one secret, which "
                    "would go to all of them; put each secret into its URL",
                    remotes.size()));
  }
  return remotes;
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
  const std::string home = variable("HOME");
  if (!home.empty() && home != "/") {
    options.cache_directories.push_back(home + "/.cache/broach");
  }
  options.read_only_caches = path_list(variable("BROACH_CACHE_PATH"));
  options.family_path = path_list(variable("BROACH_FAMILY_PATH"));
  options.trusted_keys = trusted_key_directories(home);
  options.remotes = read_remotes(options.problems);
  options.signing_key = variable("BROACH_SIGNING_KEY");
  read_number("BROACH_CACHE_BYTES", options.cache_bytes, options.problems);
  read_number("BROACH_CACHE_OBJECTS", options.cache_objects, options.problems);
  options.worker = variable("BROACH_WORKER");
  options.nvrtc = variable("BROACH_NVRTC");
  options.hiprtc = variable("BROACH_HIPRTC");
  options.hiprtc_prefix = variable("BROACH_HIPRTC_PREFIX");
  options.cuda_include = variable("BROACH_CUDA_INCLUDE");
  options.hip_include = variable("BROACH_HIP_INCLUDE");
  options.host_compiler = variable("BROACH_CXX");
  options.search_path = variable("PATH");
  if (options.search_path.empty()) options.search_path = kFixedSearchPath;
  // Compilers run in the root directory, so a relative one names nothing.
  if (const std::string scratch = variable("TMPDIR"); scratch.starts_with('/')) {
    options.scratch_directory = scratch;
  }
  read_number("BROACH_JOBS", options.jobs, options.problems);
  read_number("BROACH_COMPILE_TIME_LIMIT", options.compile_time_limit_s, options.problems);
  read_number("BROACH_COMPILE_MEMORY_LIMIT", options.compile_memory_limit_bytes, options.problems);
  return options;
}

}  // namespace broach
