#include "tools/broach/toolchains.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/compose.hpp"

namespace broach::tool {

Toolchains::Toolchains(const Options& options, const std::string& prefix, specializer::Forge& own) {
  const bool own_is_prefix = !options.hiprtc_prefix.empty();
  all_.push_back({own_is_prefix ? "prefix" : "system", &own});
  if (own_is_prefix) {
    Options system = options;
    system.hiprtc_prefix.clear();
    add("system", system);
  }
  std::error_code error;
  const std::string named = std::filesystem::absolute(prefix, error).string();
  if (prefix.empty() || named == options.hiprtc_prefix) return;
  Options other = options;
  other.hiprtc.clear();  // Names the system's.
  other.hiprtc_prefix = named;
  add(own_is_prefix ? "other prefix" : "prefix", other);
}

void Toolchains::add(std::string name, const Options& options) {
  beside_.push_back(runtime::forge_beside(*all_.front().forge, options));
  all_.push_back({std::move(name), &beside_.back()});
}

}  // namespace broach::tool
