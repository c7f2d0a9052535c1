#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace broach::tool {

/// Writes metrics in Prometheus's text format: HELP and TYPE of a metric, then its samples.
///
/// Source:  the text-based exposition format, version 0.0.4.
class Exposition {
 public:
  enum class Kind : std::uint8_t { kCounter, kGauge };
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// Starts a metric; the samples that follow are its own.
  Exposition& metric(std::string_view name, Kind kind, std::string_view help);
  /// Label values may hold any text.
  Exposition& sample(const Labels& labels, std::uint64_t value);

  const std::string& text() const noexcept { return text_; }

 private:
  std::string name_;
  std::string text_;
};

}  // namespace broach::tool
