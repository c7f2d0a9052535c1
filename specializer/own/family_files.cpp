#include "specializer/own/family_files.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "specializer/own/standard_headers.hpp"
#include "specializer/own/virtual_name.hpp"

namespace broach::specializer::own {
namespace {

using Keyword = IncludeDirective::Keyword;

constexpr std::uint32_t kLibrary = 0;
constexpr std::uint32_t kSources = 1;
constexpr std::uint32_t kFirstPack = 2;

std::string_view words_of(Keyword keyword) {
  switch (keyword) {
    case Keyword::kImport:
      return "#import";
    case Keyword::kEmbed:
      return "#embed";
    case Keyword::kInclude:
    case Keyword::kIncludeNext:
      break;
  }
  return "#include";
}

/// Puts `text` in the place of a directive, over as many lines.
void respell(std::string_view source, const IncludeDirective& directive, std::string_view text,
             std::string& out) {
  out += text;
  const std::string_view before = source.substr(directive.begin, directive.end - directive.begin);
  for (auto left = std::count(before.begin(), before.end(), '\n'); left > 0; --left) out += "\\\n";
}

}  // namespace

FamilyFiles::FamilyFiles(std::string family, std::vector<SourceFile> sources,
                         std::vector<DeclaredPack> packs)
    : family_(std::move(family)), packs_(std::move(packs)) {
  for (SourceFile& source : sources) {
    auto includes = scan_includes(source.bytes);
    sources_.insert_or_assign(std::move(source.name),
                              Source{std::move(source.bytes), std::move(includes)});
  }
  // Last, so that a family's own come before them.
  packs_.push_back({standard_headers(), {}});
}

Result<std::vector<FileRef>> FamilyFiles::link(std::string_view name, std::string& bytes,
                                               Vendor vendor) const {
  auto done = linked({kSources, std::string(name)}, bytes, scan_includes(bytes), vendor);
  if (!done) return done.error();
  if (!done->respelt.empty()) bytes = std::move(done->respelt);
  return std::move(done->includes);
}

Result<LinkedFile> FamilyFiles::file(const FileRef& ref, Vendor vendor) const {
  if (ref.tree == kLibrary) return embedded_sources().file(ref, vendor);
  {
    const std::lock_guard lock(mutex_);
    const auto known = linked_.find({vendor, ref});
    if (known != linked_.end()) {
      const Linked& held = *known->second;
      return LinkedFile{held.bytes, held.includes, held.computed};
    }
  }
  const Where where{ref.tree, ref.name};
  std::optional<Result<Linked>> done;
  if (ref.tree == kSources) {
    const auto source = sources_.find(ref.name);
    if (source != sources_.end()) {
      done = linked(where, source->second.bytes, source->second.includes, vendor);
    }
  } else if (ref.tree - kFirstPack < packs_.size()) {
    auto found = packs_[ref.tree - kFirstPack].pack->find(ref.name);
    if (!found) return found.error();
    if (*found != nullptr) done = linked(where, (*found)->bytes, (*found)->includes, vendor);
  }
  if (!done) {
    return Error{ErrorCode::kInternal,
                 fmt::format("\"{}\" is no file of {}", ref.name, words_of(ref.tree)), ""};
  }
  if (!*done) return done->error();
  auto kept = std::make_unique<Linked>(**std::move(done));
  // The bytes moved with their string.
  if (!kept->respelt.empty()) kept->bytes = kept->respelt;
  const std::lock_guard lock(mutex_);
  const auto& held = *linked_.try_emplace({vendor, ref}, std::move(kept)).first->second;
  return LinkedFile{held.bytes, held.includes, held.computed};
}

Result<std::optional<FileRef>> FamilyFiles::named(const FileRef& from, const Include& include,
                                                  Vendor vendor) const {
  IncludeDirective directive;
  directive.include = include;
  auto found = resolve({from.tree, from.name}, directive, vendor);
  // The macro's text stays, so it has to spell the very name.
  if (found && found->has_value() && (*found)->name != include.name) {
    return std::optional<FileRef>();
  }
  return found;
}

std::string FamilyFiles::words_of(std::uint32_t tree) const {
  if (tree == kLibrary) return "the library's own headers";
  if (tree == kSources) return fmt::format("the sources of {}", family_);
  return fmt::format("header pack \"{}\"", packs_[tree - kFirstPack].pack->name());
}

Result<FamilyFiles::Linked> FamilyFiles::linked(const Where& from, std::string_view bytes,
                                                const std::vector<IncludeDirective>& includes,
                                                Vendor vendor) const {
  Linked out;
  std::size_t done = 0;
  for (const IncludeDirective& directive : includes) {
    if (!directive.live) continue;
    auto found = resolve(from, directive, vendor);
    if (!found) return found.error();
    const Include& include = directive.include;
    const bool is_computed = include.form == Include::Form::kComputed && !include.name.empty();
    std::string text;
    if (found->has_value()) {
      const std::string& name = (*found)->name;
      if (include.form != Include::Form::kAngle || include.name != name ||
          directive.keyword == Keyword::kIncludeNext) {
        text = fmt::format("{} <{}>", own::words_of(directive.keyword), name);
      }
      out.includes.push_back(**std::move(found));
    } else if (is_computed) {
      out.computed.push_back(include.name);
    } else {
      text = fmt::format("#error {} is in no declared source or header pack", spelt(include));
    }
    if (text.empty()) continue;
    out.respelt += bytes.substr(done, directive.begin - done);
    respell(bytes, directive, text, out.respelt);
    done = directive.end;
  }
  if (done > 0) out.respelt += bytes.substr(done);
  out.bytes = done > 0 ? std::string_view(out.respelt) : bytes;
  return out;
}

Result<std::optional<FileRef>> FamilyFiles::resolve(const Where& from,
                                                    const IncludeDirective& directive,
                                                    Vendor vendor) const {
  const auto& [tree, name] = from;
  const Include& include = directive.include;
  const bool is_of_family = tree == kSources;
  if (include.form == Include::Form::kComputed) {
    // What a pack's macro can come to is known once all files are; where that is nothing, no
    // compiler finds a file either.
    if (!is_of_family) return std::optional<FileRef>();
    return unresolved(from, directive);
  }
  const auto beside = virtual_name(name, include.name);
  const auto full = virtual_name({}, include.name);
  const bool is_quoted = include.form == Include::Form::kQuoted;
  if (full && full->starts_with("broach/")) {
    if (auto found = in_library(full)) return found;
  }
  if (is_of_family && is_quoted) {
    for (const auto& each : {beside, full}) {
      if (auto found = in_sources(each)) return found;
    }
  }
  if (!is_of_family && is_quoted) {
    for (const auto& each : {beside, full}) {
      auto found = in_pack(tree - kFirstPack, each, vendor);
      if (!found || found->has_value()) return found;
    }
  }
  const bool is_next = !is_of_family && directive.keyword == Keyword::kIncludeNext;
  auto found = in_packs(is_next ? tree - kFirstPack + 1 : 0, full, vendor);
  if (!found || found->has_value()) return found;
  if (auto own = in_sources(full)) return own;
  if (!is_of_family) return std::optional<FileRef>();
  if (auto library = in_library(full)) return library;
  const bool may_be_anothers =
      std::any_of(packs_.begin(), packs_.end(),
                  [&](const DeclaredPack& pack) { return pack.only && *pack.only != vendor; });
  if (may_be_anothers) return std::optional<FileRef>();
  return unresolved(from, directive);
}

Result<std::optional<FileRef>> FamilyFiles::in_pack(std::size_t pack,
                                                    const std::optional<std::string>& name,
                                                    Vendor vendor) const {
  const DeclaredPack& declared = packs_[pack];
  if (!name || (declared.only && *declared.only != vendor)) return std::optional<FileRef>();
  auto found = declared.pack->find(*name);
  if (!found) return found.error();
  if (*found == nullptr) return std::optional<FileRef>();
  return std::optional(FileRef{*name, kFirstPack + static_cast<std::uint32_t>(pack)});
}

Result<std::optional<FileRef>> FamilyFiles::in_packs(std::size_t first,
                                                     const std::optional<std::string>& name,
                                                     Vendor vendor) const {
  for (std::size_t i = first; i < packs_.size(); ++i) {
    auto found = in_pack(i, name, vendor);
    if (!found || found->has_value()) return found;
  }
  return std::optional<FileRef>();
}

std::optional<FileRef> FamilyFiles::in_sources(const std::optional<std::string>& name) const {
  if (!name || !sources_.contains(*name)) return std::nullopt;
  return FileRef{*name, kSources};
}

std::optional<FileRef> FamilyFiles::in_library(const std::optional<std::string>& name) const {
  if (!name || embedded_sources().find(*name) == nullptr) return std::nullopt;
  return FileRef{*name, kLibrary};
}

Error FamilyFiles::unresolved(const Where& from, const IncludeDirective& directive) const {
  const Include& include = directive.include;
  const std::string where = fmt::format("{}: {} line {}", family_, from.second, directive.line);
  if (include.form == Include::Form::kComputed) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} includes what a macro names, {}; spell the file's name in quotes "
                             "or angle brackets, under conditions where there are several",
                             where, include.name),
                 ""};
  }
  std::string packs;
  for (const DeclaredPack& pack : packs_) {
    if (pack.pack == standard_headers()) continue;
    packs += fmt::format("{}\"{}\"", packs.empty() ? "" : ", ", pack.pack->name());
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} includes {}, which is no declared source{}; list it in \"sources\", or the "
                  "tree that has it in \"packs\": \"cuda\" and \"hip\" are the toolkits' headers",
                  where, spelt(include),
                  packs.empty() ? "" : fmt::format(" and no file of the packs {}", packs)),
      ""};
}

}  // namespace broach::specializer::own
