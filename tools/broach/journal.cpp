#include <fmt/core.h>
#include <nlohmann/json.hpp>

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

Result<ExitStatus> clear(Session& session) {
  auto cache = session.stored_cache(Session::Need::kWrite);
  if (!cache) return cache.error();
  const auto rows = (*cache)->journal();
  if (!rows) return rows.error();
  (*cache)->clear_journal();
  // What could not be cleared is still there: a busy or unwritable index has said so by a counter.
  const auto left = (*cache)->journal();
  if (!left) return left.error();
  if (!left->empty()) {
    return Error{ErrorCode::kIo,
                 fmt::format("{} stay in the journal: its database is busy or cannot be written",
                             count_text(left->size(), "shape")),
                 ""};
  }
  Output& output = session.output();
  if (output.json()) {
    output.document({{"cleared", rows->size()}});
  } else {
    output.text(fmt::format("cleared {}\n", count_text(rows->size(), "shape")));
  }
  return ExitStatus::kSuccess;
}

}  // namespace

void add_journal(CommandLine& line) {
  Command command = line.add("journal", "List shapes that were asked for and missed");
  command.add_word("ls", "List them (as without a word)").action(list);
  command.add_word("clear", "Forget them").action(clear);
  command.footer("`broach warm --from-journal` compiles them, for their own or any other target.");
  command.action(list);
}

}  // namespace broach::tool
