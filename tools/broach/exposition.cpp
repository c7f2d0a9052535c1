#include "tools/broach/exposition.hpp"

#include <fmt/format.h>

namespace broach::tool {
namespace {

/// The format escapes these three and takes every other byte as it is.
std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

Exposition& Exposition::metric(std::string_view name, Kind kind, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help,
                       kind == Kind::kCounter ? "counter" : "gauge");
  return *this;
}

Exposition& Exposition::sample(const Labels& labels, std::uint64_t value) {
  text_ += name_;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text_ +=
        fmt::format("{}{}=\"{}\"", i == 0 ? '{' : ',', labels[i].first, escaped(labels[i].second));
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
  return *this;
}

}  // namespace broach::tool
