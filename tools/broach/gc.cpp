#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/records.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  std::optional<std::uint64_t> max_bytes;
  std::optional<std::uint64_t> max_objects;
  std::vector<std::string> keys;
  bool dry_run = false;
  bool failures = false;
};

// Failed compiles that are remembered: all, or those of the keys that were named.
Result<ExitStatus> forget_failures(Session& session, const Wanted& wanted) {
  auto cache = session.stored_cache(Session::Need::kWrite);
  if (!cache) return cache.error();
  auto failures = (*cache)->failures();
  if (!failures) return failures.error();
  std::erase_if(*failures, [&](const cache::Failure& failure) {
    return !wanted.keys.empty() &&
           std::none_of(wanted.keys.begin(), wanted.keys.end(), [&](const std::string& digits) {
             return failure.key.hex().starts_with(digits);
           });
  });
  if (failures->empty() && !wanted.keys.empty()) {
    return Error{ErrorCode::kNotFound, "no failure is remembered under the keys that were named",
                 ""};
  }
  for (const cache::Failure& failure : *failures) {
    if (!wanted.dry_run) (*cache)->forget_failure(failure.key);
  }
  Output& output = session.output();
  if (output.json()) {
    Json forgotten = Json::array();
    for (const cache::Failure& failure : *failures) forgotten.push_back(failure.key.hex());
    output.document({{"dry_run", wanted.dry_run}, {"forgotten", forgotten}});
    return ExitStatus::kSuccess;
  }
  output.text(fmt::format("{} {}\n", wanted.dry_run ? "would forget" : "forgot",
                          count_text(failures->size(), "failed compile")));
  return ExitStatus::kSuccess;
}

Result<ExitStatus> collect(Session& session, const Wanted& wanted) {
  auto cache = session.stored_cache(Session::Need::kWrite);
  if (!cache) return cache.error();
  cache::GcRequest request;
  request.byte_budget = wanted.max_bytes;
  request.object_budget = wanted.max_objects;
  request.mode = wanted.dry_run ? cache::GcRequest::Mode::kReport : cache::GcRequest::Mode::kRemove;
  for (const std::string& digits : wanted.keys) {
    auto key = find_key(**cache, digits);
    if (!key) return key.error();
    request.keys.push_back(*key);
  }
  auto report = (*cache)->gc(request);
  if (!report) return report.error();
  Output& output = session.output();
  if (output.json()) {
    Json removed = Json::array();
    for (const cache::Entry& entry : report->removed) removed.push_back(to_json(entry));
    output.document({{"dry_run", wanted.dry_run},
                     {"removed", removed},
                     {"bytes_removed", report->bytes_removed},
                     {"bytes_left", report->bytes_left},
                     {"objects_left", report->objects_left}});
    return ExitStatus::kSuccess;
  }
  for (const cache::Entry& entry : report->removed) {
    output.text(fmt::format("{}  {}  {}  {}\n", short_key(entry.key), entry.description.target,
                            bytes_text(entry.bytes), shape_text(entry.description.shape_json)));
  }
  output.text(
      fmt::format("{} {}, {}; {} and {} left\n", wanted.dry_run ? "would remove" : "removed",
                  count_text(report->removed.size(), "object"), bytes_text(report->bytes_removed),
                  count_text(report->objects_left, "object"), bytes_text(report->bytes_left)));
  return ExitStatus::kSuccess;
}

}  // namespace

void add_gc(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command =
      line.add("gc", "Evict entries until the cache fits its budget, or remove some by key");
  command.add_flag("--dry-run", wanted->dry_run, "Say what would be removed, remove nothing");
  command
      .add_option("--max-bytes", wanted->max_bytes,
                  "Byte budget, as 500M or 2G (default: the cache's)")
      .as_bytes();
  command.add_option("--max-objects", wanted->max_objects, "Object budget (default: the cache's)");
  command.add_option("--key", wanted->keys, "Remove exactly this entry (may be repeated)")
      .one_value_each_time();
  command.add_flag("--failures", wanted->failures,
                   "Forget failed compiles instead, all or those of --key, so that the next "
                   "request tries again");
  command.action([wanted](Session& session) {
    return wanted->failures ? forget_failures(session, *wanted) : collect(session, *wanted);
  });
}

}  // namespace broach::tool
