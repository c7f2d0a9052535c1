#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"

namespace broach::tool {
namespace {

Result<ExitStatus> list(Session& session) {
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto rows = (*cache)->quarantine();
  if (!rows) return rows.error();
  Output& output = session.output();
  if (output.json()) {
    Json json = Json::array();
    for (const cache::QuarantineRow& row : *rows) {
      json.push_back({{"name", row.name},
                      {"why", row.why},
                      {"bytes", row.bytes},
                      {"created_unix_ms", row.created_unix_ms}});
    }
    output.document(json);
    return ExitStatus::kSuccess;
  }
  if (rows->empty()) {
    output.note("nothing is set aside");
    return ExitStatus::kSuccess;
  }
  Table table;
  table.column("NAME").column("SIZE", Table::Align::kRight).column("SET ASIDE").column("WHY");
  for (const cache::QuarantineRow& row : *rows) {
    table.row({row.name, bytes_text(row.bytes), time_text(row.created_unix_ms), one_line(row.why)});
  }
  output.text(table.text());
  return ExitStatus::kSuccess;
}

}  // namespace

void add_quarantine(CommandLine& line) {
  Command command = line.add("quarantine", "List damaged objects that were set aside, and why");
  command.action(list);
}

}  // namespace broach::tool
