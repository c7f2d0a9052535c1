#include "tools/broach/layer_alone.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "cache/bundle.hpp"
#include "cache/directory.hpp"
#include "cache/trusted_keys.hpp"
#include "runtime/compose.hpp"

namespace broach::tool {
namespace {

namespace fs = std::filesystem;

Error not_usable(const std::string& path, ErrorCode code, std::string_view why) {
  return {code, fmt::format("\"{}\" cannot be used: {}", path, why), ""};
}

// A layer says in words why it is not used. What a script is told is the kind of reason.
ErrorCode kind_of_refusal(const fs::path& place, const cache::CacheOptions& options) {
  std::error_code failed;
  if (fs::is_regular_file(place, failed)) {
    const auto keys = cache::TrustedKeys::load(options.trusted_keys);
    const auto bundle = cache::Bundle::open(place, keys, options.bundle_trust);
    return bundle ? ErrorCode::kIo : code_of_place(bundle.error().code);
  }
  const auto directory = cache::Directory::open(place, cache::Trust::kInstalled);
  return directory ? ErrorCode::kIo : code_of_place(directory.error().code);
}

}  // namespace

ErrorCode code_of_place(ErrorCode code) noexcept {
  const bool unreadable = code == ErrorCode::kNotFound || code == ErrorCode::kUnsupported;
  return unreadable ? ErrorCode::kIo : code;
}

Result<std::unique_ptr<cache::Cache>> open_alone(const std::string& path, const Options& options,
                                                 cache::BundleTrust bundle_trust) {
  std::error_code failed;
  const fs::path whole = fs::absolute(path, failed);
  if (path.empty() || failed) {
    return not_usable(path, ErrorCode::kInvalidArgument, "it names no directory and no bundle");
  }
  cache::CacheOptions alone;
  alone.read_only = {whole};
  alone.trusted_keys = runtime::cache_options(options).trusted_keys;
  alone.bundle_trust = bundle_trust;
  alone.notice = [](std::string_view) {};  // The error says it.
  const cache::CacheOptions asked = alone;
  auto cache = cache::Cache::open(std::move(alone));
  for (const cache::LayerStatus& status : cache->layers()) {
    if (!status.usable) return not_usable(path, kind_of_refusal(whole, asked), status.why);
  }
  if (fs::is_directory(whole, failed) && !fs::is_directory(whole / "objects", failed)) {
    return not_usable(path, ErrorCode::kIo,
                      "it is not a cache directory, which has a folder \"objects\"");
  }
  return cache;
}

}  // namespace broach::tool
