#include "tools/broach/session.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/compose.hpp"
#include "runtime/device.hpp"
#include "specializer/own/load.hpp"

namespace broach::tool {
namespace {

/// A family's name has no such letters and no such end.
bool names_a_file(const std::string& word) {
  return word.find('/') != std::string::npos || word.ends_with(".json");
}

Result<void> add_families(const std::string& path, const specializer::CompilersOptions& toolkits,
                          specializer::FamilySet& set) {
  auto files = specializer::own::family_files(path);
  if (!files) return files.error();
  for (const auto& file : *files) {
    auto family = specializer::own::load_family(file, toolkits);
    if (!family) return family.error();
    if (auto added = set.add(*std::move(family)); !added) return added.error();
  }
  return {};
}

}  // namespace

Session::Session(Options options, std::string terminal_name, Output& output)
    : options_(std::move(options)), terminal_name_(std::move(terminal_name)), output_(output) {
  options_.notice = [this](std::string_view line) {
    if (opening_) {
      opening_notices_.emplace_back(line);
    } else {
      output_.note(line);
    }
  };
}

void Session::use_cache_directory(std::string directory) {
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(directory, failed);
  options_.cache_directories = {failed ? std::move(directory) : absolute.string()};
  directory_named_ = true;
}

void Session::fill_for_everyone() {
  if (directory_named_) readers_ = cache::Readers::kEveryone;
}

std::string Session::why_unreadable() const {
  if (readers_ != cache::Readers::kEveryone) return "";
  const std::filesystem::path named = options_.cache_directories.front();
  constexpr auto kPass = std::filesystem::perms::others_exec;
  constexpr auto kRead = kPass | std::filesystem::perms::others_read;
  const auto lacks = [](const std::filesystem::path& path, std::filesystem::perms needed) {
    std::error_code failed;
    const auto status = std::filesystem::status(path, failed);
    return !failed && (status.permissions() & needed) != needed;
  };
  for (const auto& place : {named, named / "objects", named / "memo"}) {
    if (lacks(place, kRead)) return place.string();
  }
  std::string closed;
  for (std::filesystem::path at = named.parent_path();; at = at.parent_path()) {
    if (lacks(at, kPass)) closed = at.string();
    if (at == at.parent_path()) return closed;
  }
}

specializer::Forge& Session::open_forge() {
  if (forge_) return *forge_;
  opening_ = true;
  forge_ = std::make_unique<specializer::Forge>(runtime::open_forge(options_, readers_));
  opening_ = false;
  return *forge_;
}

specializer::Forge& Session::forge() {
  open_forge();
  if (!opening_notices_.empty()) output_.note(fmt::format("{}", fmt::join(opening_notices_, "; ")));
  opening_notices_.clear();
  return *forge_;
}

Result<const specializer::FamilySet*> Session::families() {
  if (families_) return families_.get();
  auto set = std::make_unique<specializer::FamilySet>();
  const specializer::CompilersOptions toolkits = runtime::compilers_options(options_);
  for (const std::string& path : options_.family_path) {
    if (auto added = add_families(path, toolkits, *set); !added) return added.error();
  }
  std::vector<std::string> names;
  for (const std::string& word : family_words_) {
    if (!names_a_file(word)) {
      names.push_back(word);
      continue;
    }
    auto added = specializer::own::load_family(word, toolkits);
    if (!added) return added.error();
    auto family = set->add(*std::move(added));
    if (!family) return family.error();
    names.emplace_back((*family)->name());
  }
  family_names_ = std::move(names);
  families_ = std::move(set);
  return families_.get();
}

std::unique_ptr<cache::Cache> Session::fresh_cache() const {
  cache::CacheOptions options = runtime::cache_options(options_);
  options.remotes.clear();                   // Of the directories alone.
  options.readers = readers_;                // What it serves from an image is kept as well.
  options.notice = [](std::string_view) {};  // The first cache has said it.
  return cache::Cache::open(std::move(options));
}

std::string Session::own_device() const {
  if (options_.device != "auto" && !options_.device.empty()) return options_.device;
  for (const char* name : {"cuda", "hip"}) {
    const auto device = runtime::open_device(name);
    if (device) return name;
    // No GPU is the ordinary case; one that cannot be used is worth a line.
    if (device.error().code != ErrorCode::kNotFound) output_.note(device.error().message);
  }
  output_.note("no GPU serves here: using the host");
  return "host";
}

Result<cache::Cache*> Session::stored_cache(Need need) {
  cache::Cache& cache = open_forge().cache();
  bool read = false;
  bool write = false;
  std::string reasons;
  for (const cache::LayerStatus& status : cache.layers()) {
    if (status.layer.kind == cache::LayerKind::kMemory) continue;
    if (status.layer.kind == cache::LayerKind::kRemote) continue;
    // A directory that was to be written and can only be read says why; an image's layer does not.
    const bool candidate = status.layer.kind == cache::LayerKind::kUser || !status.why.empty();
    if (status.usable && (candidate || !directory_named_)) read = true;
    if (status.usable && status.layer.kind == cache::LayerKind::kUser) write = true;
    if (!status.why.empty()) reasons += (reasons.empty() ? "" : "; ") + status.why;
  }
  if (need == Need::kWrite ? write : read) return &forge().cache();
  opening_notices_.clear();  // The error says it.
  if (reasons.empty()) reasons = "neither HOME nor XDG_CACHE_HOME names one";
  return Error{ErrorCode::kDenied,
               fmt::format("no cache directory can be {}: {}; pass --cache-dir or set "
                           "BROACH_CACHE_DIR to one of your own",
                           need == Need::kWrite ? "written" : "read", reasons),
               ""};
}

}  // namespace broach::tool
