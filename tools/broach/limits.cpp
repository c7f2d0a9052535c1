#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "tools/broach/command.hpp"
#include "tools/broach/filters.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/records.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  std::string target;
  std::optional<std::uint32_t> max_spill_bytes;
};

/// Functions that state what every launch has get a column more.
bool states_launch(const cache::EntryLimits& row) { return !launch_text(row.limits).empty(); }

Table empty_table(bool with_launch) {
  Table table;
  table.column("  FUNCTION");
  for (const char* title : {"REGS", "SPILL", "STACK", "SHARED", "DYN MAX", "CONST", "THREADS"}) {
    table.column(title, Table::Align::kRight);
  }
  if (with_launch) table.column("EVERY LAUNCH");
  return table;
}

/// A table a shape: the functions of each target's binary, one below the other.
void print_tables(Output& output, const std::vector<cache::EntryLimits>& rows) {
  const bool with_launch = std::any_of(rows.begin(), rows.end(), states_launch);
  Table table = empty_table(with_launch);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const LaunchLimits& limits = rows[r].limits;
    if (table.empty() || rows[r].key != rows[r - 1].key) {
      table.row({fmt::format("  {}, {}", rows[r].description.target, short_key(rows[r].key))});
    }
    std::vector<std::string> cells{
        "    " + limits.function,           number_text(limits.registers),
        number_text(limits.spill_bytes),    number_text(limits.stack_bytes),
        number_text(limits.static_shared),  number_text(limits.max_dynamic_shared),
        number_text(limits.constant_bytes), number_text(limits.max_threads)};
    if (with_launch) cells.push_back(launch_text(limits));
    table.row(std::move(cells));
    const std::string& shape = rows[r].description.shape_json;
    if (r + 1 < rows.size() && rows[r + 1].description.shape_json == shape) continue;
    output.text(
        fmt::format("{} {}\n{}\n", rows[r].description.family, shape_text(shape), table.text()));
    table = empty_table(with_launch);
  }
  output.text(
      "REGS, and SPILL and STACK in bytes, a thread; SHARED and DYN MAX in bytes, and THREADS, a "
      "block.\nA dash: the binary does not state it.\n");
}

Result<ExitStatus> list(Session& session, const Wanted& wanted) {
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto rows = (*cache)->limits();
  if (!rows) return rows.error();
  if (!wanted.target.empty()) {
    std::vector<cache::Entry> entries;
    for (const cache::EntryLimits& row : *rows)
      entries.emplace_back().description = row.description;
    auto target = target_named(wanted.target, entries);
    if (!target) return target.error();
    std::erase_if(*rows,
                  [&](const cache::EntryLimits& row) { return row.description.target != *target; });
  }
  std::sort(rows->begin(), rows->end(), [](const auto& a, const auto& b) {
    return std::tie(a.description.shape_json, a.description.target, a.key, a.limits.function) <
           std::tie(b.description.shape_json, b.description.target, b.key, b.limits.function);
  });
  if (session.output().json()) {
    Json json = Json::array();
    for (const cache::EntryLimits& row : *rows) json.push_back(to_json(row));
    session.output().document(json);
  } else if (rows->empty()) {
    session.output().note("no entries; `broach warm gemma-4 --target host` makes some");
  } else {
    print_tables(session.output(), *rows);
  }
  if (!wanted.max_spill_bytes) return ExitStatus::kSuccess;
  ExitStatus status = ExitStatus::kSuccess;
  for (const cache::EntryLimits& row : *rows) {
    if (row.limits.spill_bytes.value_or(0) <= *wanted.max_spill_bytes) continue;
    session.output().note(fmt::format("{} of {} for {} spills {} bytes a thread; {} are allowed",
                                      row.limits.function, short_key(row.key),
                                      row.description.target, *row.limits.spill_bytes,
                                      *wanted.max_spill_bytes));
    status = ExitStatus::kDoesNotHold;
  }
  return status;
}

}  // namespace

void add_limits(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command = line.add("limits", "Show what each compiled function needs to launch");
  command.add_option("--target", wanted->target, "Only this target's");
  command.add_option("--max-spill-bytes", wanted->max_spill_bytes,
                     "Exit with 1 when a function spills more bytes a thread than this");
  command.action([wanted](Session& session) { return list(session, *wanted); });
}

}  // namespace broach::tool
