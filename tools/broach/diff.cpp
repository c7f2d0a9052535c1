#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "tools/broach/cache_diff.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/records.hpp"

namespace broach::tool {
namespace {

constexpr char kFooter[] =
    "A and B are cache directories, bundles, or toolchains whose binaries the cache holds side by\n"
    "side (\"NVRTC 12.9\"). Entries are matched by family, target, shape and function, not by "
    "key:\n"
    "another toolkit or other sources give other keys. Nothing is written to either directory.\n"
    "\n"
    "Exit status: 0 nothing that --fail-on names grew from A to B, 1 something did or an object "
    "is\n"
    "damaged, 3 no binary is of that toolchain, 4 a directory or bundle cannot be read or trusted.";

struct Wanted {
  std::string before;
  std::string after;
  std::vector<std::string> fail_on;

  bool fails_on(Gate gate) const {
    if (gate == Gate::kNone) return false;
    return std::any_of(fail_on.begin(), fail_on.end(), [&](const std::string& name) {
      return name == "any" || name == name_of(gate);
    });
  }
};

std::string plan_text(const cache::Description& plan) {
  return fmt::format("{} for {}: {}", plan.family, plan.target, shape_text(plan.shape_json));
}

std::string value_text(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return one_line(value.is_string() ? value.get<std::string>() : value.dump());
}

std::string change_text(const FieldChange& change) {
  if (!change.before.is_number() || !change.after.is_number()) return "";
  const auto delta = change.after.get<std::int64_t>() - change.before.get<std::int64_t>();
  return fmt::format("{:+}", delta);
}

void print(Output& output, const CacheDiff& diff) {
  for (const EntryChange& entry : diff.changed) {
    Table table;
    table.column("  FUNCTION").column("FIELD").column("A").column("B").column("CHANGE");
    for (const FieldChange& change : entry.fields) {
      table.row({"  " + (change.function.empty() ? "(the binary)" : change.function), change.field,
                 value_text(change.before), value_text(change.after), change_text(change)});
    }
    output.text(fmt::format("{}\n{}\n", plan_text(entry.plan), table.text()));
  }
  for (const cache::Object& object : diff.only_before) {
    output.text(fmt::format("only in A: {}\n", plan_text(object.description)));
  }
  for (const cache::Object& object : diff.only_after) {
    output.text(fmt::format("only in B: {}\n", plan_text(object.description)));
  }
  output.text(fmt::format("{} changed, {} the same, {} only in A, {} only in B\n",
                          diff.changed.size(), diff.same, diff.only_before.size(),
                          diff.only_after.size()));
}

Json to_json(const cache::Description& plan) {
  return {{"family", plan.family}, {"target", plan.target}, {"shape", parsed(plan.shape_json)}};
}

Json to_json(const std::vector<cache::Object>& objects) {
  Json rows = Json::array();
  for (const cache::Object& object : objects) {
    Json row = to_json(object.description);
    row["key"] = object.key.key.hex();
    rows.push_back(std::move(row));
  }
  return rows;
}

Json to_json(const FieldChange& change, const Wanted& wanted) {
  return {{"function", change.function.empty() ? Json(nullptr) : Json(change.function)},
          {"field", change.field},
          {"before", change.before},
          {"after", change.after},
          {"grew", change.grew()},
          {"fails", change.grew() && wanted.fails_on(change.gate)}};
}

Json to_json(const CacheDiff& diff, const Wanted& wanted) {
  Json changed = Json::array();
  for (const EntryChange& entry : diff.changed) {
    Json row = to_json(entry.plan);
    row["key_before"] = entry.before.hex();
    row["key_after"] = entry.after.hex();
    row["changes"] = Json::array();
    for (const FieldChange& change : entry.fields) {
      row["changes"].push_back(to_json(change, wanted));
    }
    changed.push_back(std::move(row));
  }
  return {{"changed", changed},
          {"only_before", to_json(diff.only_before)},
          {"only_after", to_json(diff.only_after)},
          {"same", diff.same},
          {"older_passed_by", diff.passed_by}};
}

/// Names each figure that grew though it must not.
ExitStatus judge(Output& output, const CacheDiff& diff, const Wanted& wanted) {
  ExitStatus status = ExitStatus::kSuccess;
  for (const EntryChange& entry : diff.changed) {
    for (const FieldChange& change : entry.fields) {
      if (!change.grew() || !wanted.fails_on(change.gate)) continue;
      output.note(fmt::format("{}{}{} grew from {} to {} in {}", change.function,
                              change.function.empty() ? "" : "'s ", change.field,
                              value_text(change.before), value_text(change.after),
                              plan_text(entry.plan)));
      status = ExitStatus::kDoesNotHold;
    }
  }
  return status;
}

// What can be a path is one: a toolchain's name has no slash.
Result<std::vector<cache::Object>> objects_of(Session& session, const std::string& side) {
  std::error_code failed;
  const bool path =
      side.empty() || side.find('/') != std::string::npos || std::filesystem::exists(side, failed);
  if (path) return objects_in(side, session.options());
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  return objects_made_by(side, **cache);
}

Result<ExitStatus> diff(Session& session, const Wanted& wanted) {
  auto before = objects_of(session, wanted.before);
  if (!before) return before.error();
  auto after = objects_of(session, wanted.after);
  if (!after) return after.error();
  Output& output = session.output();
  const CacheDiff found = compare(std::move(*before), std::move(*after));
  if (output.json()) {
    output.document(to_json(found, wanted));
  } else {
    print(output, found);
  }
  if (found.passed_by > 0) {
    output.note(fmt::format("{} passed by: the same cache holds one of the same plan made later",
                            count_text(found.passed_by, "object")));
  }
  return judge(output, found, wanted);
}

}  // namespace

void add_diff(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command =
      line.add("diff", "Compare the registers, spills and sizes of two caches or toolchains");
  command.add_option("A", wanted->before, "What to compare with").required();
  command.add_option("B", wanted->after, "What is judged").required();
  command
      .add_option("--fail-on", wanted->fail_on,
                  "Exit with 1 when these grew: spills, registers, bytes or any (may be repeated)")
      .one_of({"spills", "registers", "bytes", "any"})
      .one_value_each_time();
  command.footer(kFooter);
  command.action([wanted](Session& session) { return diff(session, *wanted); });
}

}  // namespace broach::tool
