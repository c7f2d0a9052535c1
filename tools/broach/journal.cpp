#include <fmt/format.h>

#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/records.hpp"

namespace broach::tool {
namespace {

Result<ExitStatus> list(Session& session) {
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto rows = (*cache)->journal();
  if (!rows) return rows.error();
  Output& output = session.output();
  if (output.json()) {
    Json json = Json::array();
    for (const cache::JournalRow& row : *rows) {
      json.push_back({{"family", row.family},
                      {"shape", parsed(row.shape_json)},
                      {"target", row.target},
                      {"count", row.count},
                      {"last_unix_ms", row.last_unix_ms}});
    }
    output.document(json);
    return ExitStatus::kSuccess;
  }
  if (rows->empty()) {
    output.note("no shape has been missed");
    return ExitStatus::kSuccess;
  }
  Table table;
  table.column("TARGET").column("FAMILY").column("MISSED", Table::Align::kRight);
  table.column("LAST").column("SHAPE");
  for (const cache::JournalRow& row : *rows) {
    table.row({row.target, row.family, fmt::format("{}", row.count), time_text(row.last_unix_ms),
               shape_text(row.shape_json)});
  }
  output.text(table.text());
  return ExitStatus::kSuccess;
}

}  // namespace

void add_journal(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      add_subcommand(app, invocation, "journal", "List shapes that were asked for and missed");
  command.callback([&invocation] { invocation.action = list; });
}

}  // namespace broach::tool
