#include "specializer/sources.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "specializer/include_macros.hpp"

namespace broach::specializer {
namespace {

// A reached file; its bytes are its SourceFiles' own.
struct Reached {
  std::uint32_t tree = 0;
  std::string_view bytes;
};

/// The files that a main source reaches.
class Closure {
 public:
  Closure(std::string_view main_name, std::string_view main_source, Vendor vendor,
          const SourceFiles& files)
      : main_name_(main_name), vendor_(vendor), files_(files), bytes_(main_source.size()) {
    macros_.add(main_source);
  }

  /// Adds what is reached from `pending`, and what includes by macros then come to.
  Result<void> reach(std::vector<FileRef> pending) {
    while (!pending.empty()) {
      while (!pending.empty()) {
        FileRef ref = std::move(pending.back());
        pending.pop_back();
        if (auto added = add(std::move(ref), pending); !added) return added;
      }
      for (const auto& [from, text] : computed_) {
        for (const Include& include : macros_.expansions(text)) {
          auto ref = files_.named(from, include, vendor_);
          if (!ref) return ref.error();
          if (ref->has_value() && !found_.contains((*ref)->name)) {
            pending.push_back(**std::move(ref));
          }
        }
      }
    }
    return {};
  }

  /// By name.
  const std::map<std::string, Reached, std::less<>>& found() const { return found_; }

 private:
  Result<void> add(FileRef ref, std::vector<FileRef>& pending) {
    if (const auto known = found_.find(ref.name); known != found_.end()) {
      if (known->second.tree == ref.tree) return {};
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("\"{}\" is a file of {} and of {}, and both are included; a "
                      "compiler knows one file by a name: rename one of them",
                      ref.name, files_.words_of(known->second.tree), files_.words_of(ref.tree)),
          ""};
    }
    auto file = files_.file(ref, vendor_);
    if (!file) return file.error();
    bytes_ += file->bytes.size();
    if (found_.size() == kMaxPlanFiles || bytes_ > kMaxPlanBytes) {
      return Error{
          ErrorCode::kLimitExceeded,
          fmt::format("{} includes more than {} files or {} MiB; include less of {}", main_name_,
                      kMaxPlanFiles, kMaxPlanBytes >> 20, files_.words_of(ref.tree)),
          ""};
    }
    macros_.add(file->bytes);
    for (std::string& text : file->computed) computed_.emplace_back(ref, std::move(text));
    pending.insert(pending.end(), std::make_move_iterator(file->includes.begin()),
                   std::make_move_iterator(file->includes.end()));
    found_.emplace(std::move(ref.name), Reached{ref.tree, file->bytes});
    return {};
  }

  std::string_view main_name_;
  Vendor vendor_;
  const SourceFiles& files_;
  std::size_t bytes_;
  std::map<std::string, Reached, std::less<>> found_;  // Ordered, so that the plan is.
  std::vector<std::pair<FileRef, std::string>> computed_;
  IncludeMacros macros_;
};

}  // namespace

Result<std::optional<FileRef>> SourceFiles::named(const FileRef& /*from*/,
                                                  const Include& /*include*/,
                                                  Vendor /*vendor*/) const {
  return std::optional<FileRef>();
}

std::vector<Include> includes_of(std::string_view source) {
  std::vector<Include> includes;
  for (IncludeDirective& directive : scan_includes(source)) {
    includes.push_back(std::move(directive.include));
  }
  return includes;
}

const EmbeddedFile* EmbeddedSources::find(std::string_view name) const noexcept {
  const auto file = std::find_if(files_.begin(), files_.end(),
                                 [&](const EmbeddedFile& each) { return each.name == name; });
  return file == files_.end() ? nullptr : &*file;
}

Result<std::vector<FileRef>> EmbeddedSources::includes(std::string_view name,
                                                       std::string_view bytes,
                                                       Vendor vendor) const {
  std::vector<FileRef> found;
  for (Include& include : includes_of(bytes)) {
    const bool is_quoted = include.form == Include::Form::kQuoted;
    if (is_quoted && vendor != Vendor::kHost && include.name.starts_with("host/")) continue;
    if (!is_quoted || find(include.name) == nullptr) {
      return Error{ErrorCode::kInternal,
                   fmt::format("kernel source {} includes {}, which is not embedded; device "
                               "sources include embedded files by their full virtual name, in "
                               "quotes",
                               name, spelt(include)),
                   ""};
    }
    found.push_back({std::move(include.name), 0});
  }
  return found;
}

Result<std::vector<FileRef>> EmbeddedSources::link(std::string_view name, std::string& bytes,
                                                   Vendor vendor) const {
  return includes(name, bytes, vendor);
}

Result<LinkedFile> EmbeddedSources::file(const FileRef& ref, Vendor vendor) const {
  const EmbeddedFile* found = find(ref.name);
  if (found == nullptr) {
    return Error{ErrorCode::kInternal, fmt::format("{} is not embedded", ref.name), ""};
  }
  auto reached = includes(ref.name, found->bytes, vendor);
  if (!reached) return reached.error();
  return LinkedFile{found->bytes, *std::move(reached)};
}

std::string EmbeddedSources::words_of(std::uint32_t /*tree*/) const {
  return "the library's own sources";
}

const EmbeddedSources& embedded_sources() noexcept {
  static const EmbeddedSources sources(kKernelSources);
  return sources;
}

Result<std::vector<SourceFile>> close_over_includes(std::string_view main_name,
                                                    std::string main_source, Vendor vendor,
                                                    const SourceFiles& files) {
  auto pending = files.link(main_name, main_source, vendor);
  if (!pending) return pending.error();
  Closure closure(main_name, main_source, vendor, files);
  if (auto reached = closure.reach(*std::move(pending)); !reached) return reached.error();
  std::vector<SourceFile> sources;
  sources.reserve(closure.found().size() + 1);
  sources.push_back({std::string(main_name), std::move(main_source)});
  for (const auto& [name, file] : closure.found())
    sources.push_back({name, std::string(file.bytes)});
  return sources;
}

}  // namespace broach::specializer
