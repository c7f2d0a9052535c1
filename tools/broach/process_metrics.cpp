#include "tools/broach/process_metrics.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/broach/format.hpp"

namespace broach::tool {

Json to_json(const Metrics& process) {
  Json events = Json::object();
  for (const EventCount& event : process.events) events[event.name] = event.count;
  Json durations = Json::array();
  for (const DurationHistogram& each : process.durations) {
    if (each.count == 0) continue;
    Json buckets = Json::array();
    for (std::size_t i = 0; i < each.buckets.size(); ++i) {
      if (each.buckets[i] == 0) continue;
      // JSON has no infinity: the last bucket has no bound.
      const bool bounded = i + 1 < each.buckets.size();
      buckets.push_back({{"up_to_seconds", bounded ? Json(bucket_bound_seconds(i)) : Json()},
                         {"count", each.buckets[i]}});
    }
    durations.push_back({{"operation", each.operation},
                         {"cause", each.cause},
                         {"count", each.count},
                         {"sum_seconds", each.sum_seconds},
                         {"buckets", std::move(buckets)}});
  }
  return {{"events", std::move(events)}, {"durations", std::move(durations)}};
}

std::string lines_of(const Metrics& process) {
  std::string lines;
  for (const EventCount& event : process.events) {
    lines += fmt::format("this process: {} {}\n", event.name, event.count);
  }
  for (const DurationHistogram& each : process.durations) {
    if (each.count == 0) continue;
    lines += fmt::format("this process: {} ({}) {}, {} in all\n", each.operation, each.cause,
                         count_text(each.count, "time"), duration_text(each.sum_seconds));
  }
  return lines;
}

}  // namespace broach::tool
