#include "tools/broach/warm_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "specializer/shape.hpp"
#include "tools/broach/manifests.hpp"

namespace broach::tool {
namespace {

struct Shard {
  std::size_t index = 1;  ///< From 1.
  std::size_t count = 1;
};

Result<Shard> parse_shard(const std::string& text) {
  Shard shard;
  if (text.empty()) return shard;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  const bool slash = index.ec == std::errc() && index.ptr != end && *index.ptr == '/';
  const auto count = std::from_chars(slash ? index.ptr + 1 : end, end, shard.count);
  if (!slash || count.ec != std::errc() || count.ptr != end || shard.index < 1 ||
      shard.index > shard.count) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--shard {} is not i/n with 1 <= i <= n, such as 1/4", text), ""};
  }
  return shard;
}

/// One shape for one target, before it is planned.
struct Wish {
  WindowRowsShape shape;
  std::string target;
  std::string wanted_by;
  const cache::JournalRow* missed = nullptr;  ///< The row that asks for it; null: a manifest does.
};

Result<std::vector<Wish>> wishes_of_manifests(const WarmRequest& request) {
  std::vector<std::string> names = request.manifests;
  if (request.all) {
    for (const std::string_view name : shipped_manifests()) names.emplace_back(name);
  }
  std::vector<Wish> wishes;
  std::set<std::string> models;
  for (const std::string& name : names) {
    auto manifest = load_manifest(name);
    if (!manifest) return manifest.error();
    for (const specializer::ManifestEntry& entry : manifest->entries) {
      models.insert(entry.model);
      const bool chosen = request.models.empty() ||
                          std::find(request.models.begin(), request.models.end(), entry.model) !=
                              request.models.end();
      if (!chosen) continue;
      for (const Form form : {Form::kDecode, Form::kPrefill}) {
        if (!request.form.empty() && request.form != specializer::name_of(form)) continue;
        for (const std::string& target : request.targets) {
          wishes.push_back({entry.shape(form), target,
                            fmt::format("{} {}", entry.model, entry.layers), nullptr});
        }
      }
    }
  }
  for (const std::string& model : request.models) {
    if (models.contains(model)) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("no model \"{}\" in {}; the models are {}", model,
                             fmt::join(names, ", "), fmt::join(models, ", ")),
                 ""};
  }
  return wishes;
}

/// What a missed shape asks of another target: where its arithmetic is what its own target takes by
/// default, the other target's default.
WindowRowsShape for_any_target(const WindowRowsShape& shape, const std::string& own_target) {
  WindowRowsShape general = shape;
  general.arith = Arith::kDefault;
  const auto own = specializer::parse_target(own_target);
  return own && specializer::resolved(general, *own) == shape ? general : shape;
}

Result<WindowRowsShape> shape_of(const cache::JournalRow& row) {
  if (row.family == "window_rows") return specializer::window_rows_from_json(row.shape_json);
  return Error{ErrorCode::kUnsupported,
               fmt::format("this version has no family \"{}\"", row.family), ""};
}

/// Jobs by what names their binaries: shapes share some, generic kernels above all.
class JobList {
 public:
  void add(specializer::Plan plan, const std::string& wanted_by) {
    const auto [place, is_new] =
        places_.try_emplace({plan.target.name, plan.shape_json}, list_.jobs.size());
    if (is_new) {
      list_.jobs.push_back({std::move(plan), wanted_by});
    } else {
      list_.jobs[place->second].wanted_by += ", " + wanted_by;
    }
  }
  void leave_out() { ++list_.without_kernel; }
  void refuse(const cache::JournalRow& row, const Error& why) {
    const std::string place = row.family + " " + row.shape_json + " for " + row.target;
    if (!list_.refused_rows.empty() && list_.refused_rows.back().row == place) return;
    list_.refused_rows.push_back({place, why.message});
  }
  WarmList take() { return std::move(list_); }

 private:
  WarmList list_;
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
};

/// Adds what the journal asks for. A row that says nothing to this version stops no other.
std::vector<Wish> wishes_of_journal(const std::vector<cache::JournalRow>& rows,
                                    const WarmRequest& request, JobList& list) {
  std::vector<Wish> wishes;
  for (const cache::JournalRow& row : rows) {
    const auto shape = shape_of(row);
    if (!shape) {
      list.refuse(row, shape.error());
      continue;
    }
    if (!request.form.empty() && request.form != specializer::name_of(shape->form)) continue;
    if (request.targets.empty()) wishes.push_back({*shape, row.target, "journal", &row});
    for (const std::string& target : request.targets) {
      wishes.push_back({for_any_target(*shape, row.target), target, "journal", &row});
    }
  }
  return wishes;
}

Result<void> plan_wish(const Wish& wish, const WarmRequest& request, JobList& list) {
  const auto target = specializer::parse_target(wish.target);
  if (!target) return target.error();
  auto plan = specializer::plan(wish.shape, *target);
  if (!plan) {
    const bool form_was_named = !request.form.empty();
    if (plan.error().code != ErrorCode::kUnsupported || form_was_named) return plan.error();
    list.leave_out();
    return {};
  }
  list.add(*std::move(plan), wish.wanted_by);
  if (!request.generic) return {};
  auto generic = specializer::plan(wish.shape, *target, {{}, Switch::kOn});
  if (!generic) return generic.error();
  list.add(*std::move(generic), wish.wanted_by);
  return {};
}

/// Errors:  of a manifest's wish. A journal's row is refused by name: it is what a program asked
/// for
///          once, with another version perhaps, and nobody can mend it. A target that the request
///          itself names is the request's fault.
Result<void> plan_all(const std::vector<Wish>& wishes, const WarmRequest& request, JobList& list) {
  for (const std::string& name : request.targets) {
    if (const auto target = specializer::parse_target(name); !target) return target.error();
  }
  for (const Wish& wish : wishes) {
    const auto done = plan_wish(wish, request, list);
    if (done) continue;
    if (wish.missed == nullptr) return done.error();
    list.refuse(*wish.missed, done.error());
  }
  return {};
}

}  // namespace

void add_selection(CLI::App& command, WarmRequest& request) {
  command.add_option("MODEL", request.manifests,
                     "Shipped manifests by name (gemma-4), or manifest files");
  command.add_flag("--all", request.all, "Every shipped manifest");
  command
      .add_option("--target", request.targets, "A target (may be repeated): sm_90a, gfx90a, host…")
      ->allow_extra_args(false);
  command.add_option("--model", request.models, "Only this model's layers (may be repeated)")
      ->allow_extra_args(false);
  command.add_option("--form", request.form, "Only this form")
      ->check(CLI::IsMember({"decode", "prefill"}));
}

Result<WarmList> list_jobs(const WarmRequest& request, cache::Cache& cache) {
  const auto shard = parse_shard(request.shard);
  if (!shard) return shard.error();
  if (request.manifests.empty() && !request.all && !request.from_journal) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("nothing to warm: name a manifest ({}), a file, --all or "
                             "--from-journal",
                             fmt::join(shipped_manifests(), ", ")),
                 ""};
  }
  if (request.targets.empty() && !request.from_journal) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("no --target; the targets are {}",
                             fmt::join(specializer::known_targets(), ", ")),
                 ""};
  }
  JobList all;
  auto wishes = wishes_of_manifests(request);
  if (!wishes) return wishes.error();
  if (auto planned = plan_all(*wishes, request, all); !planned) return planned.error();
  if (request.from_journal) {
    const auto rows = cache.journal();
    if (!rows) return rows.error();
    const auto missed = wishes_of_journal(*rows, request, all);
    if (auto planned = plan_all(missed, request, all); !planned) return planned.error();
  }
  WarmList list = all.take();
  // Every n-th job: neighbours in a manifest take alike long, so that the shards do too.
  std::vector<WarmJob> own;
  for (std::size_t j = shard->index - 1; j < list.jobs.size(); j += shard->count) {
    own.push_back(std::move(list.jobs[j]));
  }
  list.jobs = std::move(own);
  return list;
}

}  // namespace broach::tool
