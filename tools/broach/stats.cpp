#include <fmt/core.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/metrics.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/process_metrics.hpp"
#include "tools/broach/records.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  bool prometheus = false;
};

/// Sums over entries.
struct Holdings {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hits = 0;
  std::uint64_t compile_ms = 0;

  void add(const cache::Entry& entry) {
    ++entries;
    bytes += entry.bytes;
    hits += entry.hits;
    compile_ms += entry.compile_ms;
  }
};

struct Statistics {
  std::vector<cache::LayerStatus> layers;
  std::map<std::pair<std::string, std::string>, Holdings> held;  ///< By target and family.
  Holdings total;
  std::uint64_t failures = 0;
  std::uint64_t quarantined = 0;
  std::uint64_t quarantined_bytes = 0;
  std::uint64_t journal_shapes = 0;
  std::uint64_t journal_misses = 0;
  Metrics process;
};

Result<Statistics> gather(cache::Cache& cache) {
  Statistics found;
  auto entries = cache.entries();
  if (!entries) return entries.error();
  for (const cache::Entry& entry : *entries) {
    found.held[{entry.description.target, entry.description.family}].add(entry);
    found.total.add(entry);
  }
  const auto failures = cache.failures();
  if (!failures) return failures.error();
  found.failures = failures->size();
  const auto quarantine = cache.quarantine();
  if (!quarantine) return quarantine.error();
  found.quarantined = quarantine->size();
  for (const cache::QuarantineRow& row : *quarantine) found.quarantined_bytes += row.bytes;
  const auto journal = cache.journal();
  if (!journal) return journal.error();
  found.journal_shapes = journal->size();
  for (const cache::JournalRow& row : *journal) found.journal_misses += row.count;
  found.layers = cache.layers();
  found.process = runtime::read_metrics(cache);  // Last, so that the reading itself is counted.
  return found;
}

Json to_json(const Holdings& held) {
  return {{"entries", held.entries},
          {"bytes", held.bytes},
          {"hits", held.hits},
          {"compile_ms", held.compile_ms}};
}

Json to_json(const Statistics& found) {
  Json layers = Json::array();
  for (const cache::LayerStatus& status : found.layers) layers.push_back(tool::to_json(status));
  Json rows = Json::array();
  for (const auto& [name, held] : found.held) {
    Json row = {{"target", name.first}, {"family", name.second}};
    row.update(to_json(held));
    rows.push_back(std::move(row));
  }
  Json document = {
      {"layers", layers},
      {"held", rows},
      {"total", to_json(found.total)},
      {"failures", found.failures},
      {"quarantine", {{"objects", found.quarantined}, {"bytes", found.quarantined_bytes}}},
      {"journal", {{"shapes", found.journal_shapes}, {"misses", found.journal_misses}}}};
  document.update(tool::to_json(found.process));
  return document;
}

std::string exposition_of(const Statistics& found) {
  using Kind = runtime::Exposition::Kind;
  runtime::Exposition text;
  text.metric("broach_cache_layer_usable", Kind::kGauge, "Whether the cache layer can be used.");
  for (const cache::LayerStatus& status : found.layers) {
    text.sample({{"kind", std::string(name_of(status.layer.kind))}, {"name", status.layer.name}},
                status.usable ? 1 : 0);
  }
  const auto by_plan = [&](std::string_view name, std::string_view help, auto value_of) {
    text.metric(name, Kind::kGauge, help);
    for (const auto& [plan, held] : found.held) {
      text.sample({{"target", plan.first}, {"family", plan.second}}, value_of(held));
    }
  };
  by_plan("broach_cache_entries", "Entries held.", std::mem_fn(&Holdings::entries));
  by_plan("broach_cache_bytes", "Bytes of the entries held.", std::mem_fn(&Holdings::bytes));
  // Gauges, as an evicted entry takes its hits with it.
  by_plan("broach_cache_entry_hits", "Hits of the entries held.", std::mem_fn(&Holdings::hits));
  by_plan("broach_cache_compile_seconds", "Time that the entries held took to compile.",
          [](const Holdings& held) { return std::chrono::milliseconds(held.compile_ms); });
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    text.metric(name, Kind::kGauge, help).sample({}, value);
  };
  gauge("broach_cache_failures_remembered", "Failed compiles that are remembered.", found.failures);
  gauge("broach_cache_quarantine_objects", "Damaged objects set aside.", found.quarantined);
  gauge("broach_cache_quarantine_bytes", "Bytes of the objects set aside.",
        found.quarantined_bytes);
  gauge("broach_journal_shapes", "Shapes that were asked for and missed.", found.journal_shapes);
  gauge("broach_journal_misses", "Misses of the shapes in the journal.", found.journal_misses);
  runtime::write(found.process, text);
  return text.text();
}

void print(Output& output, const Statistics& found) {
  for (const cache::LayerStatus& status : found.layers) {
    output.text(fmt::format("layer {} ({}){}\n", one_line(status.layer.name),
                            name_of(status.layer.kind),
                            status.why.empty() ? "" : ": " + one_line(status.why)));
  }
  Table table;
  table.column("TARGET").column("FAMILY").column("ENTRIES", Table::Align::kRight);
  table.column("SIZE", Table::Align::kRight).column("HITS", Table::Align::kRight);
  table.column("COMPILED IN", Table::Align::kRight);
  const auto row = [&](const std::string& target, const std::string& family, const Holdings& held) {
    table.row({target, family, fmt::format("{}", held.entries), bytes_text(held.bytes),
               fmt::format("{}", held.hits),
               duration_text(static_cast<double>(held.compile_ms) / 1000)});
  };
  for (const auto& [name, held] : found.held) row(name.first, name.second, held);
  row("all", "", found.total);
  output.text(fmt::format("\n{}\n", table.text()));
  output.text(fmt::format(
      "{} remembered\n{}, {} set aside\n{} missed {} in the journal\n",
      count_text(found.failures, "failed compile"), count_text(found.quarantined, "damaged object"),
      bytes_text(found.quarantined_bytes), count_text(found.journal_shapes, "shape"),
      count_text(found.journal_misses, "time")));
  output.text(lines_of(found.process));
}

Result<ExitStatus> stats(Session& session, const Wanted& wanted) {
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  const auto found = gather(**cache);
  if (!found) return found.error();
  Output& output = session.output();
  if (output.json()) {
    output.document(to_json(*found));
  } else if (wanted.prometheus) {
    output.text(exposition_of(*found));
  } else {
    print(output, *found);
  }
  return ExitStatus::kSuccess;
}

}  // namespace

void add_stats(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command = line.add("stats", "Count what the cache holds, remembers and set aside");
  command
      .add_flag("--prometheus", wanted->prometheus,
                "Write Prometheus's text exposition format, as for a node exporter's text file")
      .excludes("--json");
  command.action([wanted](Session& session) { return stats(session, *wanted); });
}

}  // namespace broach::tool
