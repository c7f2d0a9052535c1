#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/broach/command.hpp"
#include "tools/broach/filters.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/ls_failures.hpp"
#include "tools/broach/records.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  std::string target;
  std::string layer;
  bool failures = false;
};

// By family, target and shape, as people read them.
bool comes_before(const cache::Entry& a, const cache::Entry& b) {
  for (const auto member : {&cache::Description::family, &cache::Description::target,
                            &cache::Description::shape_json}) {
    const std::string& one = a.description.*member;
    const std::string& two = b.description.*member;
    if (one != two) return reads_before(one, two) || (!reads_before(two, one) && one < two);
  }
  return a.key < b.key;
}

// What could not be read was said as it was met; a list that lacks something is no whole answer.
ExitStatus status_of(const cache::Cache& cache) {
  return cache.counters()["shelf_unread"] == 0 ? ExitStatus::kSuccess : ExitStatus::kDoesNotHold;
}

Result<ExitStatus> list(Session& session, const Wanted& wanted) {
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto entries = wanted.layer.empty() ? (*cache)->entries() : (*cache)->entries_of(wanted.layer);
  if (!entries) return entries.error();
  std::string target;
  if (!wanted.target.empty()) {
    auto named = target_named(wanted.target, *entries);
    if (!named) return named.error();
    target = std::move(*named);
  }
  const auto families = families_chosen(session, *entries);
  if (!families) return families.error();
  std::erase_if(*entries, [&](const cache::Entry& entry) {
    return (!target.empty() && entry.description.target != target) ||
           (!families->empty() && std::find(families->begin(), families->end(),
                                            entry.description.family) == families->end());
  });
  std::sort(entries->begin(), entries->end(), comes_before);
  if (session.output().json()) {
    Json rows = Json::array();
    for (const cache::Entry& entry : *entries) rows.push_back(to_json(entry));
    session.output().document(rows);
    return status_of(**cache);
  }
  if (entries->empty()) {
    session.output().note("no entries; `broach warm gemma-4 --target host` makes some");
    return status_of(**cache);
  }
  Table table;
  table.column("KEY").column("TARGET").column("FAMILY").column("SIZE", Table::Align::kRight);
  table.column("COMPILE", Table::Align::kRight).column("HITS", Table::Align::kRight);
  table.column("LAST USED").column("LAYER").column("SHAPE");
  std::uint64_t bytes = 0;
  for (const cache::Entry& entry : *entries) {
    bytes += entry.bytes;
    table.row({short_key(entry.key), entry.description.target, entry.description.family,
               bytes_text(entry.bytes), duration_text(entry.compile_ms / 1000.0),
               fmt::format("{}", entry.hits), time_text(entry.last_used_unix_ms),
               std::string(name_of(entry.layer.kind)), shape_text(entry.description.shape_json)});
  }
  session.output().text(table.text());
  session.output().text(fmt::format("{} entr{}, {}\n", entries->size(),
                                    entries->size() == 1 ? "y" : "ies", bytes_text(bytes)));
  return status_of(**cache);
}

}  // namespace

void add_ls(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command = line.add("ls", "List the entries of the cache");
  command.add_option("--target", wanted->target, "Only this target's");
  command.add_option("--layer", wanted->layer,
                     "All that this layer has: its path as `broach doctor` shows it, memory, "
                     "user or read_only");
  command
      .add_flag("--failures", wanted->failures,
                "List the compiles that failed and are not tried again yet, with their logs")
      .excludes("--layer");
  command.action([wanted](Session& session) {
    return wanted->failures ? list_failures(session, wanted->target) : list(session, *wanted);
  });
}

}  // namespace broach::tool
