#include "tools/broach/layer_alone.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/compose.hpp"

namespace broach::tool {
namespace {

namespace fs = std::filesystem;

Error not_usable(const std::string& path, std::string_view why) {
  return {ErrorCode::kInvalidArgument, fmt::format("\"{}\" cannot be used: {}", path, why), ""};
}

}  // namespace

Result<std::unique_ptr<cache::Cache>> open_alone(const std::string& path, const Options& options,
                                                 cache::BundleTrust bundle_trust) {
  std::error_code failed;
  const fs::path whole = fs::absolute(path, failed);
  if (path.empty() || failed) return not_usable(path, "it names no directory and no bundle");
  cache::CacheOptions alone;
  alone.read_only = {whole};
  alone.trusted_keys = runtime::cache_options(options).trusted_keys;
  alone.bundle_trust = bundle_trust;
  alone.notice = [](std::string_view) {};  // The error says it.
  auto cache = cache::Cache::open(std::move(alone));
  for (const cache::LayerStatus& status : cache->layers()) {
    if (!status.usable) return not_usable(path, status.why);
  }
  if (fs::is_directory(whole, failed) && !fs::is_directory(whole / "objects", failed)) {
    return not_usable(path, "it is not a cache directory, which has a folder \"objects\"");
  }
  return cache;
}

}  // namespace broach::tool
