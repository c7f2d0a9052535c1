#include "tools/rtc/files_read.hpp"

#include <fstream>
#include <iterator>
#include <system_error>

namespace broach::rtc {
namespace {

namespace fs = std::filesystem;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

std::vector<std::string> prerequisites(std::string_view rule) {
  std::vector<std::string> names;
  // The first colon before a blank ends the target: a name may have others.
  std::size_t at = 0;
  while (at < rule.size() &&
         !(rule[at] == ':' && (at + 1 == rule.size() || is_space(rule[at + 1]))))
    ++at;
  std::string name;
  for (++at; at < rule.size(); ++at) {
    const char c = rule[at];
    const char next = at + 1 < rule.size() ? rule[at + 1] : '\n';
    if (c == '\\' && (next == '\n' || next == '\r')) continue;
    if ((c == '\\' && (next == ' ' || next == '#' || next == '\\')) || (c == '$' && next == '$')) {
      name += next;
      ++at;
    } else if (!is_space(c)) {
      name += c;
    } else if (!name.empty()) {
      names.push_back(std::move(name));
      name.clear();
    }
    // Further rules, which some options add for each file, list nothing new.
    if (c == '\n' && (at == 0 || rule[at - 1] != '\\')) break;
  }
  if (!name.empty()) names.push_back(std::move(name));
  return names;
}

Result<void> check_files_read(const fs::path& list,
                              const std::function<bool(const std::string&)>& is_own) {
  std::ifstream file(list);
  if (!file) return {};
  const std::string rule{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::error_code ignored;
  fs::remove(list, ignored);
  for (const std::string& name : prerequisites(rule)) {
    if (is_own(name) || !fs::exists(name, ignored)) continue;
    return Error{ErrorCode::kCompileFailed,
                 "the compiler read " + name +
                     ", which is none of the sources it was given; sources include only what the "
                     "plan has",
                 rule};
  }
  return {};
}

}  // namespace broach::rtc
