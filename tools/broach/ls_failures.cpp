#include "tools/broach/ls_failures.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/broach/format.hpp"
#include "tools/broach/records.hpp"

namespace broach::tool {
namespace {

Json to_json(const cache::Failure& failure) {
  return {{"key", failure.key.hex()},
          {"target", failure.target},
          {"compiler", failure.compiler},
          {"error", name_of(failure.error.code)},
          {"message", failure.error.message},
          {"log", failure.error.detail},
          {"created_unix_ms", failure.created_unix_ms},
          {"expires_unix_ms", failure.expires_unix_ms}};
}

std::string to_text(const cache::Failure& failure) {
  std::string text =
      fmt::format("{}  {}  {}, failed {}, tried again after {}\n  by {}\n  {}\n",
                  short_key(failure.key), one_line(failure.target), name_of(failure.error.code),
                  time_text(failure.created_unix_ms), time_text(failure.expires_unix_ms),
                  one_line(failure.compiler), one_line(failure.error.message));
  std::istringstream log(failure.error.detail);
  for (std::string line; std::getline(log, line);) text += "    " + one_line(line) + '\n';
  return text;
}

}  // namespace

Result<ExitStatus> list_failures(Session& session, const std::string& target) {
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto failures = (*cache)->failures();
  if (!failures) return failures.error();
  std::erase_if(*failures, [&](const cache::Failure& failure) {
    return !target.empty() && failure.target != target;
  });
  Output& output = session.output();
  if (output.json()) {
    Json rows = Json::array();
    for (const cache::Failure& failure : *failures) rows.push_back(to_json(failure));
    output.document(rows);
    return ExitStatus::kSuccess;
  }
  if (failures->empty()) output.note("no failed compile is remembered");
  for (const cache::Failure& failure : *failures) output.text(to_text(failure));
  return ExitStatus::kSuccess;
}

}  // namespace broach::tool
