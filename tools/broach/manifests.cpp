#include "tools/broach/manifests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace broach::tool {
namespace {

constexpr std::string_view kSuffix = ".json";

Result<std::string> file_text(const std::string& path) {
  std::error_code fault;
  if (std::filesystem::is_directory(path, fault)) {
    return Error{ErrorCode::kIo, fmt::format("manifest {} is a directory", path), ""};
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad()) {
    return Error{
        ErrorCode::kIo,
        fmt::format("manifest {} cannot be read: {}", path, std::generic_category().message(errno)),
        ""};
  }
  return text;
}

}  // namespace

std::vector<std::string_view> shipped_manifests() {
  std::vector<std::string_view> names;
  for (const EmbeddedFile& file : kManifests) {
    names.push_back(file.name.substr(0, file.name.size() - kSuffix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<specializer::Manifest> load_manifest(const std::string& name,
                                            const specializer::FamilySet& families) {
  for (const EmbeddedFile& file : kManifests) {
    if (file.name == name + std::string(kSuffix)) {
      return specializer::read_manifest(name, file.bytes, families);
    }
  }
  std::error_code fault;
  if (!std::filesystem::exists(name, fault)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("no manifest \"{}\": no such file, and the shipped ones are {}", name,
                             fmt::join(shipped_manifests(), ", ")),
                 ""};
  }
  auto text = file_text(name);
  if (!text) return text.error();
  return specializer::read_manifest(name, *text, families);
}

}  // namespace broach::tool
