#include "specializer/compile/flatten.hpp"

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "specializer/compile/lex_line.hpp"

namespace broach::specializer::rtc {
namespace {

// Headers met under conditions are written once a meeting; this bounds what that can grow to.
constexpr std::size_t kMaxTextBytes = std::size_t{16} << 20;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

std::string_view skip_space(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

struct Directive {
  std::string_view name;
  std::string_view rest;
};

std::optional<Directive> directive_of(std::string_view line) {
  line = skip_space(line);
  if (line.empty() || line.front() != '#') return std::nullopt;
  line = skip_space(line.substr(1));
  std::size_t length = 0;
  while (length < line.size() && line[length] >= 'a' && line[length] <= 'z') ++length;
  return Directive{line.substr(0, length), skip_space(line.substr(length))};
}

class Flattener {
 public:
  explicit Flattener(std::span<const Source> sources) {
    for (const Source& source : sources) by_name_.emplace(source.name, &source);
  }

  Result<void> add(const Source& source, int conditions) {
    if (text_.size() > kMaxTextBytes) {
      return Error{ErrorCode::kCompileFailed,
                   source.name + ": the sources join to more than " +
                       std::to_string(kMaxTextBytes) + " bytes; include headers unconditionally",
                   ""};
    }
    mark_line(1, source.name);
    LexState state;
    std::string_view left = source.bytes;
    for (std::size_t number = 1; !left.empty(); ++number) {
      const std::string_view line = left.substr(0, left.find('\n'));
      left.remove_prefix(std::min(left.size(), line.size() + 1));
      std::optional<Directive> directive;
      if (!state.block_comment && state.raw_end.empty()) directive = directive_of(line);
      if (const auto name = directive ? included(*directive) : std::nullopt) {
        if (auto added = include(*name, source, number, conditions); !added) return added;
        mark_line(number + 1, source.name);
        follow(line, state);
        if (state.block_comment) text_ += "/*";  // Begun behind the include.
        continue;
      }
      if (directive && directive->name.starts_with("if")) ++conditions;
      if (directive && directive->name == "endif") --conditions;
      if (directive && directive->name == "pragma" && directive->rest.starts_with("once")) {
        text_ += '\n';  // Once is what `include` sees to.
        continue;
      }
      text_ += line;
      text_ += '\n';
      follow(line, state);
    }
    return {};
  }

  std::string take() { return std::move(text_); }

 private:
  // The name of an include that is the sources' own: any in quotes, one in angle brackets where
  // they have it.
  std::optional<std::string> included(const Directive& directive) const {
    if (directive.name != "include" || directive.rest.empty()) return std::nullopt;
    const char open = directive.rest.front();
    if (open != '"' && open != '<') return std::nullopt;
    const std::string_view rest = directive.rest.substr(1);
    std::string name(rest.substr(0, rest.find(open == '<' ? '>' : '"')));
    if (open == '<' && !by_name_.contains(name)) return std::nullopt;
    return name;
  }

  // A header met under a condition may be left out by the compiler, so a guard in the text sees
  // to its being taken once; one met outside any condition is simply never written again.
  Result<void> include(const std::string& name, const Source& from, std::size_t line,
                       int conditions) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      return Error{ErrorCode::kCompileFailed,
                   from.name + ":" + std::to_string(line) + ": \"" + name +
                       "\" is not among the plan's sources",
                   ""};
    }
    if (written_.contains(name) || open_.contains(name)) return {};
    const std::string guard =
        "BROACH_ONCE_" + std::to_string(guards_.emplace(name, guards_.size()).first->second);
    text_.append("#ifndef ").append(guard).append("\n#define ").append(guard).append("\n");
    if (conditions == 0) written_.insert(name);
    // The guard is no condition of its own: it holds the first time.
    open_.insert(name);
    if (auto added = add(*found->second, conditions); !added) return added;
    open_.erase(name);
    text_ += "#endif\n";
    return {};
  }

  void mark_line(std::size_t number, std::string_view name) {
    text_.append("#line ").append(std::to_string(number));
    text_.append(" \"").append(name).append("\"\n");
  }

  std::map<std::string, const Source*, std::less<>> by_name_;
  std::map<std::string, std::size_t> guards_;
  std::set<std::string> written_;
  std::set<std::string> open_;  // Being written: their guards are defined.
  std::string text_;
};

}  // namespace

Result<std::string> flatten(std::span<const Source> sources) {
  if (sources.empty()) return Error{ErrorCode::kCompileFailed, "a plan without a source", ""};
  Flattener flattener(sources);
  if (auto added = flattener.add(sources.front(), 0); !added) return added.error();
  return flattener.take();
}

}  // namespace broach::specializer::rtc
