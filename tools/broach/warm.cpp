#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/left_out.hpp"
#include "tools/broach/progress.hpp"
#include "tools/broach/records.hpp"
#include "tools/broach/warm_jobs.hpp"
#include "tools/broach/warm_request.hpp"

namespace broach::tool {
namespace {

using Clock = Progress::Clock;

// A job that warms a fleet has time; what has not arrived by then has met a remote that fails.
constexpr std::chrono::seconds kUploadTime{60};

struct Wanted {
  WarmRequest request;
  std::size_t jobs = 0;
  std::optional<std::uint32_t> max_spill_bytes;
};

std::string outcome_text(const WarmJob& job, const Result<specializer::Artifact>& artifact) {
  const std::string what =
      fmt::format("{} {}", job.plan.target.name, shape_text(job.plan.shape_json));
  if (!artifact) return fmt::format("failed    {}", what);
  if (!artifact->compiled) {
    return fmt::format("hit       {} ({})", what, name_of(artifact->layer.kind));
  }
  return fmt::format("compiled  {} ({})", what,
                     duration_text(artifact->object->provenance.compile_ms / 1000.0));
}

Json to_document(const WarmList& list, const WarmOutcome& outcome, double seconds) {
  Json entries = Json::array();
  for (const auto& artifact : outcome.artifacts) {
    if (!artifact) continue;
    entries.push_back({{"key", artifact->object->key.key.hex()},
                       {"target", artifact->object->description.target},
                       {"shape", parsed(artifact->object->description.shape_json)},
                       {"compiled", artifact->compiled},
                       {"layer", name_of(artifact->layer.kind)},
                       {"compile_ms", artifact->object->provenance.compile_ms}});
  }
  Json failures = Json::array();
  for (const WarmFailure& failure : outcome.failures) {
    failures.push_back({{"target", failure.job->plan.target.name},
                        {"shape", parsed(failure.job->plan.shape_json)},
                        {"wanted_by", failure.job->wanted_by},
                        {"code", name_of(failure.error.code)},
                        {"message", failure.error.message},
                        {"detail", failure.error.detail}});
  }
  Json refused = Json::array();
  for (const RefusedRow& row : list.refused_rows) {
    refused.push_back({{"row", row.row}, {"why", row.why}});
  }
  return {{"requested", list.jobs.size()},
          {"compiled", outcome.compiled},
          {"hits", outcome.hits},
          {"failed", outcome.failures.size()},
          {"without_kernel", list.without_kernel},
          {"not_served", not_served_json(list)},
          {"refused_rows", std::move(refused)},
          {"seconds", seconds},
          {"entries", std::move(entries)},
          {"failures", std::move(failures)}};
}

WarmOutcome run_with_progress(Session& session, const std::vector<WarmJob>& jobs,
                              std::size_t threads) {
  Output& output = session.output();
  const ProgressStyle found = progress_style_for(output.messages(), session.terminal_name());
  // A script that reads JSON wants no log of steps; a person watching it does want the bar.
  const ProgressStyle style =
      output.json() && found == ProgressStyle::kLines ? ProgressStyle::kQuiet : found;
  Progress progress(output.messages(), style, jobs.size(), Clock::now());
  return run_jobs(session.forge(), jobs, threads,
                  [&](const WarmJob& job, const Result<specializer::Artifact>& artifact) {
                    progress.step(outcome_text(job, artifact), Clock::now());
                  });
}

// Machines that warm one manifest at once, all in its order, would wait for one of them at every
// key. In orders of their own each finds keys that nobody makes yet.
bool shares_with_a_fleet(const cache::Cache& cache) {
  const auto layers = cache.layers();
  return std::any_of(layers.begin(), layers.end(), [](const cache::LayerStatus& status) {
    return status.layer.kind == cache::LayerKind::kRemote && status.usable;
  });
}

/// What reached the remotes.
struct Uploads {
  std::uint64_t arrived = 0;
  std::uint64_t lost = 0;
};

// What was here before may be news to the remotes.
Uploads finish_uploads(cache::Cache& cache, const WarmOutcome& outcome) {
  for (const auto& artifact : outcome.artifacts) {
    const bool local =
        artifact && !artifact->compiled && artifact->layer.kind != cache::LayerKind::kRemote;
    if (local) cache.share(*artifact->object);
  }
  const bool all = cache.drain_uploads(kUploadTime);
  const cache::Counters counted = cache.counters();
  Uploads uploads{counted["remote_uploaded"],
                  counted["remote_upload_failed"] + counted["remote_upload_dropped"]};
  if (!all) ++uploads.lost;
  return uploads;
}

// What is there now is not missed any more.
void forget_misses(cache::Cache& cache, const std::vector<WarmJob>& jobs,
                   const WarmOutcome& outcome) {
  const auto rows = cache.journal();
  if (!rows) return;
  for (const cache::JournalRow& row : *rows) {
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const specializer::Plan& plan = jobs[j].plan;
      if (outcome.artifacts[j] && plan.family == row.family && plan.target.name == row.target &&
          plan.shape_json == row.shape_json) {
        cache.forget_miss(row);
      }
    }
  }
}

// One cause is said once, however many kernels it keeps from being made.
void tell_failures(Output& output, const std::vector<WarmFailure>& failures) {
  std::map<std::string_view, std::size_t> causes;
  for (const WarmFailure& failure : failures) ++causes[failure.error.message];
  for (const WarmFailure& failure : failures) {
    const auto cause = causes.find(failure.error.message);
    if (cause == causes.end()) continue;
    const std::string more =
        cause->second > 1 ? fmt::format(" and {} more", cause->second - 1) : std::string();
    output.note(fmt::format("failed: {} for {}{}: {}", shape_text(failure.job->plan.shape_json),
                            failure.job->plan.target.name, more, failure.error.message));
    causes.erase(cause);
  }
}

ExitStatus status_of(const WarmList& list, const WarmOutcome& outcome) {
  if (!list.refused_rows.empty()) return ExitStatus::kDoesNotHold;
  if (outcome.failures.empty()) return ExitStatus::kSuccess;
  for (const WarmFailure& failure : outcome.failures) {
    if (exit_status_of(failure.error.code) != ExitStatus::kStorage) return ExitStatus::kDoesNotHold;
  }
  return ExitStatus::kStorage;
}

Result<ExitStatus> warm(Session& session, const Wanted& wanted) {
  session.fill_for_everyone();
  auto stored = session.stored_cache(Session::Need::kWrite);  // Nothing would be kept without it.
  if (!stored) return stored.error();
  auto families = session.families();
  if (!families) return families.error();
  auto list = list_jobs(wanted.request, **stored, **families);
  if (!list) return list.error();
  if (shares_with_a_fleet(**stored)) {
    std::shuffle(list->jobs.begin(), list->jobs.end(), std::mt19937(std::random_device()()));
  }
  const std::vector<WarmJob>& jobs = list->jobs;
  Output& output = session.output();
  tell_left_out(output, wanted.request, *list);
  const auto start = Clock::now();
  const std::size_t threads =
      wanted.jobs > 0 ? wanted.jobs : std::max(1U, std::thread::hardware_concurrency());
  WarmOutcome outcome = run_with_progress(session, jobs, threads);
  demand_stored(outcome, jobs, *session.fresh_cache());
  const Uploads uploads = finish_uploads(**stored, outcome);
  if (wanted.max_spill_bytes) demand_spills(outcome, jobs, *wanted.max_spill_bytes);
  forget_misses(**stored, jobs, outcome);
  const std::chrono::duration<double> seconds = Clock::now() - start;
  tell_failures(output, outcome.failures);
  if (uploads.lost > 0) {
    output.note(fmt::format("{} did not reach the remotes; `broach doctor` asks them",
                            count_text(uploads.lost, "object")));
  }
  if (const std::string closed = session.why_unreadable(); !closed.empty()) {
    output.note(
        fmt::format("no other user can read the cache directory: {} is closed to them; an "
                    "image that another user runs needs it open (`chmod a+rx {}`)",
                    closed, closed));
  }
  if (output.json()) {
    Json document = to_document(*list, outcome, seconds.count());
    document["uploaded"] = uploads.arrived;
    document["not_uploaded"] = uploads.lost;
    output.document(document);
  } else {
    output.text(fmt::format("{} requested: {} compiled, {} already there, {} failed, in {}\n",
                            jobs.size(), outcome.compiled, outcome.hits, outcome.failures.size(),
                            duration_text(seconds.count())));
  }
  if (asks_for_nothing(wanted.request, *list)) return ExitStatus::kDoesNotHold;
  return status_of(*list, outcome);
}

}  // namespace

void add_warm(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  WarmRequest& request = wanted->request;
  Command command = line.add("warm", "Compile what models need and keep it; no GPU is needed");
  add_selection(command, request);
  command.add_flag("--from-journal", request.from_journal,
                   "The shapes that were asked for and missed");
  command.add_flag("--generic", request.generic,
                   "Also the generic kernels, which serve a shape's first use in the background "
                   "mode");
  command.add_option("--shard", request.shard, "i/n: the i-th of n parts, from 1")
      .placeholder("i/n");
  command.add_option("--jobs", wanted->jobs, "Compiles at a time (default: one a core)").positive();
  command.add_option("--max-spill-bytes", wanted->max_spill_bytes,
                     "Fail a kernel that spills more bytes a thread than this");
  command.footer(
      "Exit status 0 when everything that was asked for is in the cache, 1 when something failed,\n"
      "4 when nothing could be kept.");
  command.action([wanted](Session& session) { return warm(session, *wanted); });
}

}  // namespace broach::tool
