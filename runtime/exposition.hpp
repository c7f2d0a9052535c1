#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace broach::runtime {

/// Writes metrics in Prometheus's text format: HELP and TYPE of a metric, then its samples.
///
/// Source:  the text-based exposition format, version 0.0.4.
class Exposition {
 public:
  enum class Kind : std::uint8_t { kCounter, kGauge, kHistogram };
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// Starts a metric; the samples that follow are its own.
  Exposition& metric(std::string_view name, Kind kind, std::string_view help);
  /// Label values may hold any text.
  Exposition& sample(const Labels& labels, std::uint64_t value);
  Exposition& sample(const Labels& labels, std::chrono::milliseconds value);  ///< In seconds.

  /// One series of a histogram: its buckets, summed up as the format wants them, sum and count.
  ///
  /// Shapes:  `bounds` are the buckets' upper ends; the last one is infinite.
  Exposition& histogram(const Labels& labels, std::span<const double> bounds,
                        std::span<const std::uint64_t> buckets, double sum);

  const std::string& text() const noexcept { return text_; }

 private:
  void line(std::string_view suffix, const Labels& labels, std::string_view value);

  std::string name_;
  std::string text_;
};

}  // namespace broach::runtime
