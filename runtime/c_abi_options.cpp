#include "runtime/c_abi_options.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/c_abi_sized.hpp"

namespace broach::runtime {
namespace {

void set(std::string& field, const char* text) {
  if (text != nullptr) field = text;
}

Result<void> set(std::vector<std::string>& field, const char* const* texts, std::size_t count,
                 const char* name) {
  if (count == 0) return {};
  field.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (texts == nullptr || texts[i] == nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("broach_runtime_options.{}[{}] is NULL", name, i),
                   {}};
    }
    field.emplace_back(texts[i]);
  }
  return {};
}

Result<void> set_remotes(Options& to, const char* urls, const char* secret) {
  if (urls != nullptr) {
    to.remotes.clear();
    std::istringstream words(urls);
    for (std::string url; words >> url;) to.remotes.emplace_back().url = url;
  }
  if (secret == nullptr) return {};
  if (to.remotes.size() != 1) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("broach_runtime_options.remote_secret is one remote's; {} are named: "
                             "put each secret into its URL",
                             to.remotes.size()),
                 {}};
  }
  to.remotes.front().secret = secret;
  to.remotes.front().secret_file.clear();
  return {};
}

// Later headers only added fields.
constexpr std::size_t kFirstOptionsSize =
    offsetof(broach_runtime_options, notice_user) + sizeof(void*);

}  // namespace

Result<Options> options_from(const broach_runtime_options* options) {
  Options to = Options::from_environment();
  if (options == nullptr) return to;
  auto from = sized_copy(options, kFirstOptionsSize, "broach_runtime_options");
  if (!from) return from.error();
  set(to.device, from->device);
  set(to.worker, from->worker);
  switch (from->first_use) {
    case BROACH_FIRST_USE_DEFAULT:
      break;
    case BROACH_FIRST_USE_WAIT:
      to.first_use = FirstUse::kWait;
      break;
    case BROACH_FIRST_USE_BACKGROUND:
      to.first_use = FirstUse::kBackground;
      break;
    case BROACH_FIRST_USE_NEVER:
      to.first_use = FirstUse::kNever;
      break;
    default:
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("broach_runtime_options.first_use is {}; it must be 0 to {}",
                               from->first_use, static_cast<int>(BROACH_FIRST_USE_NEVER)),
                   {}};
  }
  if (auto ok = set(to.cache_directories, from->cache_directories, from->cache_directory_count,
                    "cache_directories");
      !ok) {
    return ok.error();
  }
  if (auto ok = set(to.read_only_caches, from->read_only_caches, from->read_only_cache_count,
                    "read_only_caches");
      !ok) {
    return ok.error();
  }
  set(to.signing_key, from->signing_key);
  if (auto ok = set_remotes(to, from->remotes, from->remote_secret); !ok) return ok.error();
  if (from->jobs != 0) to.jobs = from->jobs;
  if (from->cache_bytes != 0) to.cache_bytes = from->cache_bytes;
  if (from->cache_objects != 0) to.cache_objects = from->cache_objects;
  if (from->notice != nullptr) {
    to.notice = [notice = from->notice, user = from->notice_user](std::string_view line) {
      notice(user, std::string(line).c_str());
    };
  }
  return to;
}

}  // namespace broach::runtime
