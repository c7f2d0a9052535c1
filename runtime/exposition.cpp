#include "runtime/exposition.hpp"

#include <fmt/core.h>

#include <cmath>
#include <cstddef>

namespace broach::runtime {
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

std::string_view name_of(Exposition::Kind kind) {
  switch (kind) {
    case Exposition::Kind::kCounter:
      return "counter";
    case Exposition::Kind::kGauge:
      return "gauge";
    case Exposition::Kind::kHistogram:
      return "histogram";
  }
  return "untyped";
}

std::string number_text(double value) {
  return std::isinf(value) ? std::string("+Inf") : fmt::format("{}", value);
}

}  // namespace

Exposition& Exposition::metric(std::string_view name, Kind kind, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, name_of(kind));
  return *this;
}

void Exposition::line(std::string_view suffix, const Labels& labels, std::string_view value) {
  text_.append(name_).append(suffix);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text_ +=
        fmt::format("{}{}=\"{}\"", i == 0 ? '{' : ',', labels[i].first, escaped(labels[i].second));
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
}

Exposition& Exposition::sample(const Labels& labels, std::uint64_t value) {
  line("", labels, fmt::format("{}", value));
  return *this;
}

Exposition& Exposition::sample(const Labels& labels, std::chrono::milliseconds value) {
  line("", labels, number_text(std::chrono::duration<double>(value).count()));
  return *this;
}

Exposition& Exposition::histogram(const Labels& labels, std::span<const double> bounds,
                                  std::span<const std::uint64_t> buckets, double sum) {
  std::uint64_t count = 0;
  Labels with_bound = labels;
  with_bound.emplace_back("le", "");
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    count += buckets[i];
    with_bound.back().second = number_text(bounds[i]);
    line("_bucket", with_bound, fmt::format("{}", count));
  }
  line("_sum", labels, number_text(sum));
  line("_count", labels, fmt::format("{}", count));
  return *this;
}

}  // namespace broach::runtime
