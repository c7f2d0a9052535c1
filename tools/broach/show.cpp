#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/key_fields.hpp"
#include "tools/broach/records.hpp"
#include "tools/contract/harness/report.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  std::string digits;
  bool source = false;
};

/// One entry with everything that is known of it.
struct Shown {
  cache::Object object;
  std::vector<cache::KeyField> fields;
  std::vector<cache::DeviceLimits> device_limits;
  std::vector<cache::Receipt> receipts;
};

Result<Shown> gather(cache::Cache& cache, const std::string& digits) {
  auto key = find_key(cache, digits);
  if (!key) return key.error();
  auto object = cache.read(*key);
  if (!object) return object.error();
  if (!object->has_value()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("entry {} was removed or set aside just now", key->hex()), ""};
  }
  Shown shown;
  shown.object = std::move(**object);
  auto fields = cache::fields_of(shown.object.key.stream);
  if (!fields) return fields.error();
  shown.fields = with_named_sources(*fields);
  // What devices said of it is in the index alone, and an index can be lost: the entry is shown
  // without it then.
  if (auto limits = cache.device_limits(*key)) shown.device_limits = std::move(*limits);
  if (auto receipts = cache.receipts(*key)) shown.receipts = std::move(*receipts);
  return shown;
}

Json to_document(const Shown& shown, bool source) {
  const cache::Object& object = shown.object;
  Json fields = Json::array();
  for (const cache::KeyField& field : shown.fields) {
    Json row = {{"label", field.label}, {"value", field_summary(field)}};
    if (source && is_source(field)) row["text"] = field.value;
    fields.push_back(std::move(row));
  }
  Json limits = Json::array();
  for (const LaunchLimits& row : object.limits) limits.push_back(to_json(row));
  Json device_limits = Json::array();
  for (const cache::DeviceLimits& row : shown.device_limits) {
    Json json = {{"device", row.device}, {"driver", row.driver}};
    json.update(to_json(row.limits));
    device_limits.push_back(std::move(json));
  }
  Json receipts = Json::array();
  for (const cache::Receipt& row : shown.receipts) {
    receipts.push_back({{"device", row.device},
                        {"driver", row.driver},
                        {"gates", parsed(row.gates_json)},
                        {"broach_version", row.broach_version},
                        {"created_unix_ms", row.created_unix_ms}});
  }
  return {{"key", object.key.key.hex()},
          {"family", object.description.family},
          {"target", object.description.target},
          {"shape", parsed(object.description.shape_json)},
          {"kind", object.description.kind},
          {"source_hash", object.description.source_hash},
          {"compiler", object.description.compiler},
          {"binary_bytes", object.payload.size()},
          {"key_fields", fields},
          {"limits", limits},
          {"device_limits", device_limits},
          {"provenance",
           {{"created_unix_ms", object.provenance.created_unix_ms},
            {"compile_ms", object.provenance.compile_ms},
            {"broach_version", object.provenance.broach_version},
            {"toolkit", object.provenance.toolkit},
            {"least_driver", object.provenance.least_driver},
            {"log", object.provenance.log}}},
          {"receipts", receipts}};
}

Table limits_table() {
  Table table;
  table.column("FUNCTION");
  for (const char* title : {"REGS", "SPILL", "STACK", "SHARED", "DYN MAX", "CONST", "THREADS"}) {
    table.column(title, Table::Align::kRight);
  }
  return table.column("FROM");
}

void add_row(Table& table, const LaunchLimits& limits, const std::string& from) {
  table.row({limits.function, number_text(limits.registers), number_text(limits.spill_bytes),
             number_text(limits.stack_bytes), number_text(limits.static_shared),
             number_text(limits.max_dynamic_shared), number_text(limits.constant_bytes),
             number_text(limits.max_threads), from});
}

// What a launch of a function has and takes, where the binary says so.
std::string launch_line(const LaunchLimits& limits) {
  std::string words = launch_text(limits);
  if (words.empty()) return {};
  if (limits.parameter_bytes) {
    std::size_t bytes = 0;
    for (const std::uint32_t size : *limits.parameter_bytes) bytes += size;
    words += fmt::format("; {} parameter{}, {} bytes", limits.parameter_bytes->size(),
                         limits.parameter_bytes->size() == 1 ? "" : "s", bytes);
  }
  return fmt::format("every launch of {}: {}\n", limits.function, words);
}

// A bundle has the same bytes whenever it is written: neither time nor duration is in it.
std::string how_compiled(const cache::Provenance& provenance) {
  if (provenance.created_unix_ms == 0) return "compiled";
  return fmt::format("compiled in {} on {}", duration_text(provenance.compile_ms / 1000.0),
                     time_text(provenance.created_unix_ms));
}

std::string to_text(const Shown& shown, bool source) {
  const cache::Object& object = shown.object;
  std::string text =
      fmt::format("{}\n  {} for {}: {}\n  {}, {}; {} by {} (broach {})\n", object.key.key.hex(),
                  object.description.family, object.description.target,
                  shape_text(object.description.shape_json), object.description.kind,
                  bytes_text(object.payload.size()), how_compiled(object.provenance),
                  object.provenance.toolkit, object.provenance.broach_version);
  if (!object.provenance.least_driver.empty()) {
    text += fmt::format("  needs {} or later\n", object.provenance.least_driver);
  }
  Table fields;
  fields.column("KEY FIELD").column("VALUE");
  for (const cache::KeyField& field : shown.fields) fields.row({field.label, field_summary(field)});
  text += '\n' + fields.text() + '\n';
  Table limits = limits_table();
  for (const LaunchLimits& row : object.limits) add_row(limits, row, row.source);
  for (const cache::DeviceLimits& row : shown.device_limits) {
    add_row(limits, row.limits, fmt::format("{}, driver {}", row.device, row.driver));
  }
  text += limits.text();
  for (const LaunchLimits& row : object.limits) text += launch_line(row);
  for (const cache::Receipt& row : shown.receipts) {
    text += fmt::format("\nreceipt: {}, driver {}, {}, broach {}: {}\n", row.device, row.driver,
                        time_text(row.created_unix_ms), row.broach_version,
                        contract::receipt_words(row.gates_json));
  }
  if (!object.provenance.log.empty()) {
    text += fmt::format("\ncompiler's log:\n{}\n", object.provenance.log);
  }
  if (source) {
    for (const cache::KeyField& field : shown.fields) {
      if (is_source(field)) text += fmt::format("\n// ---- {}\n{}", field.label, field.value);
    }
  }
  return text;
}

Result<ExitStatus> show(Session& session, const Wanted& wanted) {
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto shown = gather(**cache, wanted.digits);
  if (!shown) return shown.error();
  if (session.output().json()) {
    session.output().document(to_document(*shown, wanted.source));
  } else {
    session.output().text(to_text(*shown, wanted.source));
  }
  return ExitStatus::kSuccess;
}

}  // namespace

void add_show(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command =
      line.add("show", "Show one entry: key fields, limits, provenance, receipts, source");
  command
      .add_option("KEY", wanted->digits,
                  "The key, or as many of its first digits as name one entry")
      .required();
  command.add_flag("--source", wanted->source, "Print the sources that were compiled, too");
  command.action([wanted](Session& session) { return show(session, *wanted); });
}

}  // namespace broach::tool
