#include <fmt/format.h>

#include <memory>

#include "specializer/plan.hpp"
#include "specializer/shape.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/nearest.hpp"
#include "tools/broach/records.hpp"
#include "tools/broach/shape_words.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  std::vector<std::string> shape;
  std::string target;
};

Json to_document(const specializer::Plan& plan, const cache::KeyRecord& key,
                 const std::optional<cache::Hit>& hit, const std::optional<Nearest>& nearest) {
  Json json = {
      {"key", key.key.hex()},   {"target", plan.target.name}, {"shape", parsed(plan.shape_json)},
      {"hit", hit.has_value()}, {"layer", nullptr},           {"nearest", nullptr}};
  if (hit) json["layer"] = {{"kind", name_of(hit->layer.kind)}, {"name", hit->layer.name}};
  if (nearest) {
    Json rows = Json::array();
    for (const KeyDifference& row : nearest->differences) {
      rows.push_back({{"field", row.label}, {"wanted", row.wanted}, {"found", row.found}});
    }
    json["nearest"] = to_json(nearest->entry);
    json["nearest"]["differences"] = rows;
  }
  return json;
}

std::string to_text(const specializer::Plan& plan, const cache::KeyRecord& key,
                    const std::optional<cache::Hit>& hit, const std::optional<Nearest>& nearest) {
  std::string text = fmt::format("{} for {}: {}\nkey {}\n", plan.family, plan.target.name,
                                 shape_text(plan.shape_json), key.key.hex());
  if (hit) {
    return text + fmt::format("hit, in {} layer {}\n", name_of(hit->layer.kind), hit->layer.name);
  }
  if (!nearest) return text + fmt::format("miss; no entry of {} is there\n", plan.family);
  text += fmt::format("miss; the nearest entry is {}, which differs in {}:\n",
                      short_key(nearest->entry.key),
                      count_text(nearest->differences.size(), "key field"));
  Table table;
  table.column("KEY FIELD").column("WANTED").column("NEAREST ENTRY");
  for (const KeyDifference& row : nearest->differences) {
    table.row(
        {row.label, row.wanted.empty() ? "-" : row.wanted, row.found.empty() ? "-" : row.found});
  }
  return text + table.text();
}

Result<ExitStatus> explain(Session& session, const Wanted& wanted) {
  auto words = split_shape(wanted.shape);
  if (!words) return words.error();
  auto shape = specializer::parse_window_rows(words->words);
  if (!shape) return shape.error();
  auto target = specializer::parse_target(wanted.target);
  if (!target) return target.error();
  auto plan = specializer::plan(*shape, *target);
  if (!plan) return plan.error();
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto key = session.forge().key(*plan);
  if (!key) return key.error();
  const std::optional<cache::Hit> hit = (*cache)->find(*key);
  std::optional<Nearest> nearest;
  if (!hit) {
    auto found = nearest_entry(**cache, *plan, *key);
    if (!found) return found.error();
    nearest = std::move(*found);
  }
  Output& output = session.output();
  if (output.json()) {
    output.document(to_document(*plan, *key, hit, nearest));
  } else {
    output.text(to_text(*plan, *key, hit, nearest));
  }
  return hit ? ExitStatus::kSuccess : ExitStatus::kDoesNotHold;
}

}  // namespace

void add_explain(CLI::App& app, Invocation& invocation) {
  auto wanted = std::make_shared<Wanted>();
  CLI::App& command =
      add_subcommand(app, invocation, "explain",
                     "Say whether a shape is cached, and if not, what differs nearest");
  command.add_option("SHAPE", wanted->shape, "The shape, in words")->required();
  command.add_option("--target", wanted->target, "The target: sm_90a, gfx90a, host…")
      ->default_val("host");
  command.footer(std::string(kShapeHelp) + "\nExit status 0 for a hit, 1 for a miss.");
  command.callback([&invocation, wanted] {
    invocation.action = [wanted](Session& session) { return explain(session, *wanted); };
  });
}

}  // namespace broach::tool
