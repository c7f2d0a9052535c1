#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/broach/command.hpp"
#include "tools/broach/coverage_check.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/layer_alone.hpp"
#include "tools/broach/left_out.hpp"
#include "tools/broach/records.hpp"
#include "tools/broach/warm_request.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  WarmRequest request;
  std::string place;  ///< A bundle or directory; empty: the layer stack.
  bool offline = false;
  bool allow_unsigned = false;
};

Json row_of(const Coverage& row) {
  Json json = {{"target", row.job->plan.target.name},
               {"family", row.job->plan.family},
               {"shape", parsed(row.job->plan.shape_json)},
               {"wanted_by", row.job->wanted_by},
               {"compilers", row.makers == Makers::kAny ? "any" : "this machine's"},
               {"key", row.key ? Json(row.key->hex()) : Json(nullptr)},
               {"covered", row.hit.has_value()}};
  if (row.hit) {
    json["compiler"] = row.hit->object->description.compiler;
    json["layer"] = to_json(row.hit->layer);
    return json;
  }
  json["why"] = row.why;
  json["nearest"] = row.nearest ? to_json(*row.nearest) : Json(nullptr);
  return json;
}

/// Whether a row was sought as on a machine without compilers, asked for or not.
bool any_compiler(const CoverageReport& report) {
  return std::any_of(report.rows.begin(), report.rows.end(),
                     [](const Coverage& row) { return row.makers == Makers::kAny; });
}

Json to_document(const CoverageReport& report, const WarmList& list) {
  Json rows = Json::array();
  for (const Coverage& row : report.rows) rows.push_back(row_of(row));
  return {{"requested", report.rows.size()},
          {"covered", report.covered},
          {"missing", report.rows.size() - report.covered},
          {"without_kernel", list.without_kernel},
          {"not_served", not_served_json(list)},
          {"entries", std::move(rows)}};
}

/// "compiler: wanted X, nearest has Y; option: …", the first few.
std::string differences_text(const Nearest& nearest) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, nearest.differences.size()); ++i) {
    const KeyDifference& row = nearest.differences[i];
    text += fmt::format("{}{}: wanted {}, has {}", i == 0 ? "" : "; ", row.label,
                        row.wanted.empty() ? "none" : row.wanted,
                        row.found.empty() ? "none" : row.found);
  }
  if (nearest.differences.size() > kShown) {
    text += fmt::format("; and {} more", nearest.differences.size() - kShown);
  }
  return text;
}

std::string to_text(const CoverageReport& report, const std::string& place) {
  std::string text;
  for (const Coverage& row : report.rows) {
    if (row.hit) continue;
    text += fmt::format("missing   {} {} ({})\n", row.job->plan.target.name,
                        shape_text(row.job->plan.shape_json), row.job->wanted_by);
    if (!row.why.empty()) text += fmt::format("    {}\n", one_line(row.why));
    if (row.nearest) {
      text += fmt::format("    nearest {}: {}\n", short_key(row.nearest->entry.key),
                          differences_text(*row.nearest));
    } else {
      text += fmt::format("    no entry of {} is there\n", row.job->plan.family);
    }
  }
  std::map<std::string, std::size_t> layers;
  for (const Coverage& row : report.rows) {
    if (row.hit) ++layers[row.hit->layer.name];
  }
  for (const auto& [name, count] : layers) text += fmt::format("{:>6} from {}\n", count, name);
  return text + fmt::format("{} of {} binaries covered by {}{}\n", report.covered,
                            report.rows.size(), place.empty() ? "the cache layers" : place,
                            any_compiler(report) ? ", made by any compiler" : "");
}

Result<ExitStatus> coverage(Session& session, const Wanted& wanted) {
  auto families = session.families();
  if (!families) return families.error();
  auto list = list_jobs(wanted.request, session.cache(), **families);
  if (!list) return list.error();
  std::unique_ptr<cache::Cache> alone;
  if (!wanted.place.empty()) {
    auto opened = open_alone(
        wanted.place, session.options(),
        wanted.allow_unsigned ? cache::BundleTrust::kOwner : cache::BundleTrust::kSignature);
    if (!opened) return opened.error();
    alone = std::move(*opened);
  }
  const Makers makers = wanted.offline ? Makers::kAny : Makers::kThisMachines;
  auto report =
      check_coverage(session.forge(), alone ? *alone : session.cache(), list->jobs, makers);
  if (!report) return report.error();
  Output& output = session.output();
  if (any_compiler(*report) && !wanted.offline) {
    output.note(
        "no compiler was found for a target: any compiler's binaries count, as for a "
        "look-up here");
  }
  tell_left_out(output, wanted.request, *list);
  if (output.json()) {
    output.document(to_document(*report, *list));
  } else {
    output.text(to_text(*report, wanted.place));
  }
  if (asks_for_nothing(wanted.request, *list)) return ExitStatus::kDoesNotHold;
  return report->covered == report->rows.size() ? ExitStatus::kSuccess : ExitStatus::kDoesNotHold;
}

}  // namespace

void add_coverage(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  WarmRequest& request = wanted->request;
  Command command =
      line.add("coverage", "Prove that the cache or a bundle has every binary that models need");
  add_selection(command, request);
  command.add_option("--in", wanted->place, "Only this bundle or cache directory counts")
      .placeholder("PATH");
  command.add_flag("--offline", wanted->offline,
                   "Any compiler's binaries count, as on a machine that has none");
  command.add_flag("--unsigned", wanted->allow_unsigned,
                   "Look into a bundle of your own that no trusted key signed");
  command.footer(
      "Every binary is read and checked; nothing is compiled or written. Exit status 0 when all "
      "are\n"
      "there, 1 when one is missing or damaged.");
  command.action([wanted](Session& session) { return coverage(session, *wanted); });
}

}  // namespace broach::tool
