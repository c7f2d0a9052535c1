#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "specializer/plan.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/coverage_check.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/records.hpp"
#include "tools/broach/shape_argument.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  std::vector<std::string> shape;
  std::string target;
  bool offline = false;
};

/// Who compiles the shape at this moment.
using Maker = std::optional<cache::Holder>;

Json row_of(const Maker& maker) {
  if (!maker) return nullptr;
  return {{"pid", maker->pid}, {"stage", maker->stage}, {"seconds", maker->seconds}};
}

Json to_document(const specializer::Plan& plan, const Coverage& answer, const Maker& maker) {
  Json json = {{"key", answer.key ? Json(answer.key->hex()) : Json(nullptr)},
               {"target", plan.target.name},
               {"shape", parsed(plan.shape_json)},
               {"compilers", answer.makers == Makers::kAny ? "any" : "this machine's"},
               {"hit", answer.hit.has_value()},
               {"layer", nullptr},
               {"being_made_by", row_of(maker)},
               {"why", answer.why},
               {"nearest", answer.nearest ? to_json(*answer.nearest) : Json(nullptr)}};
  if (answer.hit) json["layer"] = to_json(answer.hit->layer);
  return json;
}

std::string to_text(const specializer::Plan& plan, const Coverage& answer, const Maker& maker) {
  std::string text = fmt::format(
      "{} for {}: {}\nkey {}\n", plan.family, plan.target.name, shape_text(plan.shape_json),
      answer.key ? answer.key->hex() : "of any compiler, as there is none for this target");
  if (answer.hit) {
    return text + fmt::format("hit, in {} layer {}\n", name_of(answer.hit->layer.kind),
                              answer.hit->layer.name);
  }
  if (maker) {
    text += fmt::format("process {} makes it, for {} so far (stage: {})\n", maker->pid,
                        duration_text(maker->seconds), one_line(maker->stage));
  }
  const std::string miss = answer.why.empty() ? "miss" : "miss: " + one_line(answer.why);
  if (!answer.nearest)
    return text + fmt::format("{}; no entry of {} is there\n", miss, plan.family);
  text += fmt::format("{}; the nearest entry is {} in {} layer {}, which differs in {}:\n", miss,
                      short_key(answer.nearest->entry.key),
                      name_of(answer.nearest->entry.layer.kind), answer.nearest->entry.layer.name,
                      count_text(answer.nearest->differences.size(), "key field"));
  Table table;
  table.column("KEY FIELD").column("WANTED").column("NEAREST ENTRY");
  for (const KeyDifference& row : answer.nearest->differences) {
    table.row(
        {row.label, row.wanted.empty() ? "-" : row.wanted, row.found.empty() ? "-" : row.found});
  }
  return text + table.text();
}

Result<ExitStatus> explain(Session& session, const Wanted& wanted) {
  auto families = session.families();
  if (!families) return families.error();
  auto shape = parse_shape(wanted.shape, **families);
  if (!shape) return shape.error();
  auto target = specializer::parse_target(wanted.target);
  if (!target) return target.error();
  auto served = specializer::serve(*shape, *target);
  if (!served) return served.error();
  auto plan = specializer::plan(*served);
  if (!plan) return plan.error();
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  const std::vector<WarmJob> jobs = {{*plan, ""}};
  auto report = check_coverage(session.forge(), **cache, jobs,
                               wanted.offline ? Makers::kAny : Makers::kThisMachines);
  if (!report) return report.error();
  const Coverage& answer = report->rows.front();
  const Maker maker = answer.hit || !answer.key ? std::nullopt : (*cache)->holder(*answer.key);
  Output& output = session.output();
  if (output.json()) {
    output.document(to_document(*plan, answer, maker));
  } else {
    output.text(to_text(*plan, answer, maker));
  }
  return answer.hit ? ExitStatus::kSuccess : ExitStatus::kDoesNotHold;
}

}  // namespace

void add_explain(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command =
      line.add("explain", "Say whether a shape is cached, and if not, what differs nearest");
  command.add_option("SHAPE", wanted->shape, "The shape, in words").required();
  command.add_option("--target", wanted->target, "The target: sm_90a, gfx90a, host…")
      .defaults_to("host");
  command.add_flag("--offline", wanted->offline,
                   "Any compiler's binary counts, as on a machine that has none");
  command.footer(shape_help() + "\nExit status 0 for a hit, 1 for a miss.");
  command.action([wanted](Session& session) { return explain(session, *wanted); });
}

}  // namespace broach::tool
