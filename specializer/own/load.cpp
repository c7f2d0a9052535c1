#include "specializer/own/load.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cache/file.hpp"
#include "cache/trusted_path.hpp"
#include "specializer/own/names.hpp"

namespace broach::specializer::own {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".family.json";
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxSourceBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxAllBytes = std::size_t{64} << 20;

Result<std::string> read(const fs::path& path, std::string_view what, std::size_t most) {
  auto file = cache::open_trusted_file(path, {.trust = cache::Trust::kInstalled, .what = what});
  if (!file) return file.error();
  if (static_cast<std::size_t>(file->status.st_size) > most) {
    return Error{ErrorCode::kLimitExceeded,
                 fmt::format("{} {} has {} bytes; at most {} are read", what, path.string(),
                             file->status.st_size, most),
                 ""};
  }
  auto bytes = cache::read_bytes(file->fd, 0, static_cast<std::uint64_t>(file->status.st_size),
                                 path.string());
  if (!bytes) return bytes.error();
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

}  // namespace

Result<std::shared_ptr<const OwnFamily>> load_family(const fs::path& file,
                                                     const CompilersOptions& toolkits) {
  auto text = read(file, "family file", kMaxFileBytes);
  if (!text) return text.error();
  // Its list of sources says what else is read.
  auto description = read_description(file.string(), *text);
  if (!description) return description.error();
  std::vector<SourceFile> sources;
  std::size_t bytes = 0;
  for (const std::string& name : description->sources) {
    auto source = read(file.parent_path() / name, "kernel source", kMaxSourceBytes);
    if (!source) {
      Error error = source.error();
      error.message = fmt::format("{}: source \"{}\": {}", file.string(), name, error.message);
      return error;
    }
    bytes += source->size();
    if (bytes > kMaxAllBytes) {
      return Error{ErrorCode::kLimitExceeded,
                   fmt::format("{}: the sources up to \"{}\" have more than {} bytes",
                               file.string(), name, kMaxAllBytes),
                   ""};
    }
    sources.push_back({name, *std::move(source)});
  }
  // A relative family file lies in the working directory of now.
  std::error_code failed;
  const fs::path absolute = fs::absolute(file, failed);
  return OwnFamily::make(file.string(), *text, *std::move(description), std::move(sources),
                         {(failed ? file : absolute).parent_path(), toolkits});
}

Result<std::vector<fs::path>> family_files(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return std::vector<fs::path>{path};
  std::vector<fs::path> files;
  for (fs::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().filename().string().ends_with(kSuffix)) files.push_back(at->path());
  }
  if (failed) {
    return Error{ErrorCode::kIo,
                 fmt::format("directory {} cannot be listed: {}", path.string(), failed.message()),
                 ""};
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace broach::specializer::own
