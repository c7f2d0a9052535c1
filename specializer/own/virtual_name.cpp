#include "specializer/own/virtual_name.hpp"

#include <algorithm>
#include <vector>

namespace broach::specializer::own {
namespace {

bool is_usable(char c) {
  return static_cast<unsigned char>(c) >= ' ' && c != '\x7f' && c != '\\' && c != '"' && c != '<' &&
         c != '>';
}

// Adds a path's parts to those before it; says whether they stay within the tree.
bool add_parts(std::string_view path, std::vector<std::string_view>& parts) {
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (parts.empty()) {
      return false;
    } else {
      parts.pop_back();
    }
  }
  return true;
}

}  // namespace

std::optional<std::string> virtual_name(std::string_view from, std::string_view name) {
  if (name.empty() || name.starts_with('/') || name.ends_with('/')) return std::nullopt;
  if (!std::all_of(name.begin(), name.end(), is_usable)) return std::nullopt;
  std::vector<std::string_view> parts;
  const std::size_t slash = from.rfind('/');
  if (slash != std::string_view::npos && !add_parts(from.substr(0, slash), parts)) {
    return std::nullopt;
  }
  if (!add_parts(name, parts) || parts.empty()) return std::nullopt;
  if (parts.size() > kMaxVirtualNameParts) return std::nullopt;
  std::string joined;
  for (const std::string_view part : parts) {
    if (!joined.empty()) joined += '/';
    joined += part;
  }
  if (joined.size() > kMaxVirtualNameBytes) return std::nullopt;
  return joined;
}

}  // namespace broach::specializer::own
