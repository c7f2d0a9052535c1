#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cache/bundle_writer.hpp"
#include "cache/key_file.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/coverage_check.hpp"
#include "tools/broach/filters.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/warm_request.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  WarmRequest request;
  std::string output;
  std::string sign_with;
  bool any_compiler = false;
};

bool chosen(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

/// The keys of every entry that the targets and families let through.
Result<std::vector<cache::Key>> keys_of_entries(Session& session, cache::Cache& cache,
                                                const Wanted& wanted) {
  auto entries = cache.entries();
  if (!entries) return entries.error();
  std::vector<std::string> targets;
  for (const std::string& word : wanted.request.targets) {
    auto target = target_named(word, *entries);
    if (!target) return target.error();
    targets.push_back(std::move(*target));
  }
  auto families = families_chosen(session, *entries);
  if (!families) return families.error();
  std::vector<cache::Key> keys;
  for (const cache::Entry& entry : *entries) {
    if (chosen(targets, entry.description.target) && chosen(*families, entry.description.family)) {
      keys.push_back(entry.key);
    }
  }
  if (!keys.empty()) return keys;
  return Error{ErrorCode::kNotFound,
               "no entry of the cache is of these targets and families; `broach ls` lists what "
               "there is",
               ""};
}

Result<std::vector<cache::Key>> keys_to_export(Session& session, cache::Cache& cache,
                                               const Wanted& wanted) {
  if (wanted.request.manifests.empty() && wanted.request.shapes.empty() && !wanted.request.all) {
    return keys_of_entries(session, cache, wanted);
  }
  auto known = session.families();
  if (!known) return known.error();
  auto families = families_chosen(session, {});
  if (!families) return families.error();
  auto list = list_jobs(wanted.request, cache, **known);
  if (!list) return list.error();
  std::erase_if(list->jobs,
                [&](const WarmJob& job) { return !chosen(*families, job.plan.family); });
  auto report = check_coverage(session.forge(), cache, list->jobs,
                               wanted.any_compiler ? Makers::kAny : Makers::kThisMachines);
  if (!report) return report.error();
  return covered_keys(*report);
}

Result<ExitStatus> write(Session& session, const Wanted& wanted) {
  std::optional<cache::SecretKey> signer;
  if (!wanted.sign_with.empty()) {
    auto key = cache::read_secret_key(wanted.sign_with);
    if (!key) return key.error();
    signer.emplace(std::move(*key));
  }
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto keys = keys_to_export(session, **cache, wanted);
  if (!keys) return keys.error();
  const auto read = [&](const cache::Key& key) -> Result<cache::Object> {
    auto object = (*cache)->read(key);
    if (!object) return object.error();
    if (*object) return std::move(**object);
    return Error{ErrorCode::kNotFound, fmt::format("{} has gone meanwhile", key.hex()), ""};
  };
  auto written =
      cache::write_bundle(wanted.output, std::move(*keys), read, signer ? &*signer : nullptr);
  if (!written) return written.error();
  Output& output = session.output();
  if (output.json()) {
    output.document(
        {{"file", wanted.output},
         {"objects", written->objects},
         {"object_bytes", written->object_bytes},
         {"file_bytes", written->file_bytes},
         {"signed_by", signer ? Json(signer->public_key().id().hex()) : Json(nullptr)}});
    return ExitStatus::kSuccess;
  }
  output.text(fmt::format("{}: {}, {}, compressed to {}, {}\n", wanted.output,
                          count_text(written->objects, "object"), bytes_text(written->object_bytes),
                          bytes_text(written->file_bytes),
                          signer ? fmt::format("signed by {} ({})", signer->public_key().name,
                                               signer->public_key().id().hex())
                                 : "not signed: others have to vouch for it themselves"));
  return ExitStatus::kSuccess;
}

}  // namespace

void add_export(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  WarmRequest& request = wanted->request;
  Command command = line.add("export", "Write entries into one compressed file, a bundle");
  command.add_option("MODEL", request.manifests,
                     "Only what these manifests need, all of it (shipped names, or files)");
  command.add_flag("--all", request.all, "What every shipped manifest needs");
  command.add_option("--target", request.targets, "Only this target's (may be repeated)")
      .one_value_each_time();
  command.add_option("--model", request.models, "Only this model's layers (may be repeated)")
      .one_value_each_time();
  add_form(command, request);
  command.add_flag("--any-compiler", wanted->any_compiler,
                   "Of what manifests need, take what any compiler made");
  command.add_option("-o,--output", wanted->output, "The bundle").placeholder("FILE").required();
  command.add_option("--sign", wanted->sign_with, "Sign with this secret key (broach key generate)")
      .placeholder("KEYFILE");
  command.footer(
      "The same entries and key give the same bytes. Without a model every entry of the targets "
      "and\n"
      "families goes in. With one, exit status 1 and no file when something that it needs is "
      "missing.");
  command.action([wanted](Session& session) { return write(session, *wanted); });
}

}  // namespace broach::tool
