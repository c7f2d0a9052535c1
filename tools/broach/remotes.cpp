#include "tools/broach/remotes.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace broach::tool {
namespace {

std::string_view use_of(const cache::RemoteStatus& status) {
  if (status.breaker.empty()) return "not used";
  return status.writable ? "read and written" : "only read";
}

}  // namespace

Json to_json(const cache::RemoteStatus& status) {
  Json json = {{"name", status.layer.name}, {"use", use_of(status)},
               {"leases", status.leases},   {"reachable", status.latency.has_value()},
               {"latency_ms", nullptr},     {"fault", status.fault},
               {"breaker", status.breaker}, {"faults_in_a_row", status.faults_in_a_row},
               {"why", status.why}};
  if (status.latency) json["latency_ms"] = static_cast<double>(status.latency->count()) / 1000.0;
  return json;
}

std::string remote_text(const cache::RemoteStatus& status) {
  std::string text = fmt::format("  {}\n      {}", status.layer.name, use_of(status));
  if (!status.why.empty()) text += ": " + status.why;
  text += '\n';
  if (status.breaker.empty()) return text;
  if (status.latency) {
    text += fmt::format("      answers in {:.1f} ms",
                        static_cast<double>(status.latency->count()) / 1000.0);
  } else {
    text += fmt::format("      does not answer: {}", status.fault);
  }
  return text + fmt::format("; breaker {}{}\n", status.breaker,
                            status.leases ? "; leases decide who compiles" : "");
}

}  // namespace broach::tool
