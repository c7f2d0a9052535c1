#include "specializer/sources.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace broach::specializer {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  return start == std::string_view::npos ? std::string_view{} : text.substr(start);
}

// The quoted name on an include line, or nothing.
std::string_view quoted_name(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with('#')) return {};
  line = trimmed(line.substr(1));
  if (!line.starts_with("include")) return {};
  line = trimmed(line.substr(7));
  if (!line.starts_with('"')) return {};
  const std::size_t end = line.find('"', 1);
  return end == std::string_view::npos ? std::string_view{} : line.substr(1, end - 1);
}

}  // namespace

std::vector<std::string_view> quoted_includes(std::string_view source) {
  std::vector<std::string_view> names;
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    const std::string_view name = quoted_name(source.substr(0, end));
    if (!name.empty()) names.push_back(name);
    source.remove_prefix(std::min(end + 1, source.size()));
  }
  return names;
}

Result<std::vector<SourceFile>> close_over_includes(std::string_view main_name,
                                                    std::string main_source, Vendor vendor,
                                                    std::span<const EmbeddedFile> embedded) {
  std::map<std::string_view, std::string_view> found;  // Ordered, so that the plan is.
  struct Pending {
    std::string_view name, bytes;
  };
  std::vector<Pending> pending{{main_name, main_source}};
  while (!pending.empty()) {
    const Pending file = pending.back();
    pending.pop_back();
    for (const std::string_view name : quoted_includes(file.bytes)) {
      if (found.contains(name) || (vendor != Vendor::kHost && name.starts_with("host/"))) continue;
      const auto source = std::find_if(embedded.begin(), embedded.end(),
                                       [&](const EmbeddedFile& each) { return each.name == name; });
      if (source == embedded.end()) {
        return Error{ErrorCode::kInternal,
                     fmt::format("kernel source {} includes \"{}\", which is not embedded; device "
                                 "sources include embedded files by their full virtual name",
                                 file.name, name),
                     ""};
      }
      found.emplace(source->name, source->bytes);
      pending.push_back({source->name, source->bytes});
    }
  }
  std::vector<SourceFile> sources;
  sources.reserve(found.size() + 1);
  for (const auto& [name, bytes] : found)
    sources.push_back({std::string(name), std::string(bytes)});
  sources.insert(sources.begin(), SourceFile{std::string(main_name), std::move(main_source)});
  return sources;
}

}  // namespace broach::specializer
