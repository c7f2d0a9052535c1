#include "specializer/sources.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

namespace broach::specializer {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
constexpr std::string_view kDirectives[] = {"include", "include_next", "import", "embed"};

/// Moves past blanks and comments at the start of a line.
std::string_view skip_blank(std::string_view text) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\v\f"), text.size()));
    if (!text.starts_with("/*")) return text;
    const std::size_t end = text.find("*/", 2);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  }
}

/// Takes `token` off the start of `text`, if it is there.
bool take(std::string_view& text, std::string_view token) {
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  return true;
}

/// The name between `open` and `close` at the start of `text`, or nothing.
std::optional<std::string_view> delimited(std::string_view text, char open, char close) {
  if (!text.starts_with(open)) return std::nullopt;
  const std::size_t end = text.find(close, 1);
  if (end == std::string_view::npos) return std::nullopt;
  return text.substr(1, end - 1);
}

std::optional<Include> include_on(std::string_view line) {
  line = skip_blank(line);
  if (!take(line, "#") && !take(line, "%:") && !take(line, "?\?=")) return std::nullopt;
  line = skip_blank(line);
  const std::string_view directive = line.substr(0, line.find_first_not_of(kLetters));
  if (std::find(std::begin(kDirectives), std::end(kDirectives), directive) ==
      std::end(kDirectives)) {
    return std::nullopt;
  }
  line = skip_blank(line.substr(directive.size()));
  if (const auto name = delimited(line, '"', '"')) {
    return Include{Include::Form::kQuoted, std::string(*name)};
  }
  if (const auto name = delimited(line, '<', '>')) {
    return Include{Include::Form::kAngle, std::string(*name)};
  }
  return Include{Include::Form::kComputed, std::string(line)};
}

/// The next line of `source`, spliced where it ends in a backslash; takes it off.
std::string next_line(std::string_view& source) {
  std::string line;
  while (!source.empty()) {
    std::string_view part = source.substr(0, source.find('\n'));
    source.remove_prefix(std::min(part.size() + 1, source.size()));
    if (part.ends_with('\r')) part.remove_suffix(1);
    const bool is_spliced = part.ends_with('\\');
    if (is_spliced) part.remove_suffix(1);
    line += part;
    if (!is_spliced) break;
  }
  return line;
}

/// An include as a message spells it.
std::string spelt(const Include& include) {
  switch (include.form) {
    case Include::Form::kQuoted:
      return fmt::format("\"{}\"", include.name);
    case Include::Form::kAngle:
      return fmt::format("<{}>", include.name);
    case Include::Form::kComputed:
      break;
  }
  return include.name;
}

}  // namespace

std::vector<Include> includes_of(std::string_view source) {
  std::vector<Include> includes;
  while (!source.empty()) {
    if (auto include = include_on(next_line(source))) includes.push_back(*std::move(include));
  }
  return includes;
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
    for (const Include& include : includes_of(file.bytes)) {
      const std::string_view name = include.name;
      const bool is_quoted = include.form == Include::Form::kQuoted;
      if (is_quoted &&
          (found.contains(name) || (vendor != Vendor::kHost && name.starts_with("host/")))) {
        continue;
      }
      const auto source = std::find_if(embedded.begin(), embedded.end(),
                                       [&](const EmbeddedFile& each) { return each.name == name; });
      if (!is_quoted || source == embedded.end()) {
        return Error{ErrorCode::kInternal,
                     fmt::format("kernel source {} includes {}, which is not embedded; device "
                                 "sources include embedded files by their full virtual name, in "
                                 "quotes",
                                 file.name, spelt(include)),
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
