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

/// One shape for one target (or for every target of the request), before it is planned.
struct Wish {
  WindowRowsShape shape;
  std::string target;
  std::string wanted_by;
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
      for (const Form form : {Form::kDecode, Form::kPrompt}) {
        if (!request.form.empty() && request.form != specializer::name_of(form)) continue;
        for (const std::string& target : request.targets) {
          wishes.push_back(
              {entry.shape(form), target, fmt::format("{} {}", entry.model, entry.layers)});
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

Result<std::vector<Wish>> wishes_of_journal(const WarmRequest& request, cache::Cache& cache) {
  auto rows = cache.journal();
  if (!rows) return rows.error();
  std::vector<Wish> wishes;
  for (const cache::JournalRow& row : *rows) {
    auto shape = specializer::window_rows_from_json(row.shape_json);
    if (!shape) return shape.error();
    if (request.targets.empty()) wishes.push_back({*shape, row.target, "journal"});
    for (const std::string& target : request.targets) {
      wishes.push_back({for_any_target(*shape, row.target), target, "journal"});
    }
  }
  return wishes;
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
  WarmList take() { return std::move(list_); }

 private:
  WarmList list_;
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
};

Result<WarmList> planned(const std::vector<Wish>& wishes, const WarmRequest& request) {
  JobList list;
  for (const Wish& wish : wishes) {
    auto target = specializer::parse_target(wish.target);
    if (!target) return target.error();
    auto plan = specializer::plan(wish.shape, *target);
    if (!plan) {
      const bool form_was_named = !request.form.empty();
      if (plan.error().code != ErrorCode::kUnsupported || form_was_named) return plan.error();
      list.leave_out();
      continue;
    }
    list.add(*std::move(plan), wish.wanted_by);
    if (!request.generic) continue;
    auto generic = specializer::plan(wish.shape, *target, {{}, Switch::kOn});
    if (!generic) return generic.error();
    list.add(*std::move(generic), wish.wanted_by);
  }
  return list.take();
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
      ->check(CLI::IsMember({"decode", "prompt"}));
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
  auto wishes = wishes_of_manifests(request);
  if (!wishes) return wishes.error();
  if (request.from_journal) {
    auto more = wishes_of_journal(request, cache);
    if (!more) return more.error();
    wishes->insert(wishes->end(), more->begin(), more->end());
  }
  auto list = planned(*wishes, request);
  if (!list) return list.error();
  // Every n-th job: neighbours in a manifest take alike long, so that the shards do too.
  std::vector<WarmJob> own;
  for (std::size_t j = shard->index - 1; j < list->jobs.size(); j += shard->count) {
    own.push_back(std::move(list->jobs[j]));
  }
  list->jobs = std::move(own);
  return list;
}

}  // namespace broach::tool
