#include "tools/broach/warm_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "specializer/family.hpp"
#include "specializer/shape.hpp"
#include "tools/broach/manifests.hpp"
#include "tools/broach/shape_argument.hpp"

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
  specializer::Shape shape;
  std::string target;
  std::string wanted_by;
  const cache::JournalRow* missed = nullptr;  ///< The row that asks for it; null: a manifest does.
};

/// The value that a form's name, or an alias of it, has in a family; nothing where the family has
/// no field "form", or no such form.
std::optional<std::pair<std::size_t, std::uint64_t>> form_in(const specializer::Family& family,
                                                             const std::string& form) {
  const auto fields = family.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name != "form") continue;
    const auto value = specializer::read_value(family.name(), fields[i], form);
    if (value) return std::pair(i, *value);
  }
  return {};
}

/// Whether a shape is of the form that was asked for, if one was.
bool has_form(const specializer::Shape& shape, const std::string& form) {
  if (form.empty()) return true;
  const auto wanted = form_in(shape.family(), form);
  return wanted && shape[wanted->first] == wanted->second;
}

/// What a command line may say after --form: a form that some family has.
std::string check_form(const std::string& form) {
  for (const specializer::Family* family : specializer::families()) {
    if (form_in(*family, form)) return {};
  }
  return fmt::format("no family has a form \"{}\"; decode and prefill are examples", form);
}

Result<std::vector<Wish>> wishes_of_shapes(const WarmRequest& request,
                                           const specializer::FamilySet& families) {
  std::vector<Wish> wishes;
  for (const std::string& text : request.shapes) {
    const auto shape = parse_shape({text}, families);
    if (!shape) return shape.error();
    for (const std::string& target : request.targets) {
      wishes.push_back({*shape, target, "command line", nullptr});
    }
  }
  return wishes;
}

/// Errors:  kInvalidArgument naming the manifest or model and what would work.
Result<std::vector<Wish>> wishes_of_manifests(const WarmRequest& request,
                                              const specializer::FamilySet& families,
                                              std::vector<specializer::NotServed>& not_served) {
  const auto is_chosen = [&](const std::string& model) {
    return request.models.empty() ||
           std::find(request.models.begin(), request.models.end(), model) != request.models.end();
  };
  std::vector<std::string> names = request.manifests;
  if (request.all) {
    for (const std::string_view name : shipped_manifests()) names.emplace_back(name);
  }
  std::vector<Wish> wishes;
  std::set<std::string> models;
  for (const std::string& name : names) {
    auto manifest = load_manifest(name, families);
    if (!manifest) return manifest.error();
    for (specializer::NotServed& layer : manifest->not_served) {
      models.insert(layer.model);
      if (is_chosen(layer.model)) not_served.push_back(std::move(layer));
    }
    for (const specializer::ManifestEntry& entry : manifest->entries) {
      models.insert(entry.model);
      if (!is_chosen(entry.model)) continue;
      for (const specializer::Shape& shape : entry.shapes) {
        if (!has_form(shape, request.form)) continue;
        for (const std::string& target : request.targets) {
          wishes.push_back(
              {shape, target, fmt::format("{} {}", entry.model, entry.layers), nullptr});
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

/// What a missed shape asks of another target: each field that its own target would give it by
/// default is at its default, so that the other target's holds.
specializer::Shape for_any_target(const specializer::Shape& shape, const std::string& own_target) {
  const auto own = specializer::parse_target(own_target);
  if (!own) return shape;
  specializer::Shape general = shape;
  const auto fields = shape.family().fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    specializer::Shape tried = general;
    tried.set(i, fields[i].default_value);
    const auto served = specializer::serve(tried, *own);
    if (served && served->shape() == shape) general = tried;
  }
  return general;
}

Result<specializer::Shape> shape_of(const cache::JournalRow& row,
                                    const specializer::FamilySet& families) {
  const auto family = families.named(row.family);
  if (!family) return family.error();
  return specializer::shape_from_json(**family, row.shape_json);
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
                                    const WarmRequest& request,
                                    const specializer::FamilySet& families, JobList& list) {
  std::vector<Wish> wishes;
  for (const cache::JournalRow& row : rows) {
    const auto shape = shape_of(row, families);
    if (!shape) {
      list.refuse(row, shape.error());
      continue;
    }
    if (!has_form(*shape, request.form)) continue;
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
  auto served = specializer::serve(wish.shape, *target);
  if (!served) {
    const bool form_was_named = !request.form.empty();
    if (served.error().reason != Reason::kNoKernel || form_was_named) return served.error();
    list.leave_out();
    return {};
  }
  auto plan = specializer::plan(*served);
  if (!plan) return plan.error();
  list.add(*std::move(plan), wish.wanted_by);
  if (!request.generic || !wish.shape.family().has_generic()) return {};
  auto generic = specializer::plan(*served, {{}, Switch::kOn});
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

void add_form(Command& command, WarmRequest& request) {
  command.add_option("--form", request.form, "Only this form: decode, prefill")
      .checked_by(check_form);
}

void add_selection(Command& command, WarmRequest& request) {
  command.add_option("MODEL", request.manifests,
                     "Shipped manifests by name (gemma-4), or manifest files");
  command.add_flag("--all", request.all, "Every shipped manifest");
  command
      .add_option(
          "--shape", request.shapes,
          "One shape (may be repeated): 'FAMILY name=value …', as `broach help shapes` says")
      .one_value_each_time();
  command
      .add_option("--target", request.targets, "A target (may be repeated): sm_90a, gfx90a, host…")
      .one_value_each_time();
  command.add_option("--model", request.models, "Only this model's layers (may be repeated)")
      .one_value_each_time();
  add_form(command, request);
}

Result<WarmList> list_jobs(const WarmRequest& request, cache::Cache& cache,
                           const specializer::FamilySet& families) {
  const auto shard = parse_shard(request.shard);
  if (!shard) return shard.error();
  const bool names_shapes = !request.manifests.empty() || request.all || !request.shapes.empty();
  if (!names_shapes && !request.from_journal) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("nothing to warm: name a manifest ({}), a file, --shape, --all "
                             "or --from-journal",
                             fmt::join(shipped_manifests(), ", ")),
                 ""};
  }
  if (request.targets.empty() && !request.from_journal) {
    return Error{ErrorCode::kInvalidArgument,
                 "no --target; sm_90a, gfx942 and host are examples, and `broach help targets` "
                 "lists all",
                 ""};
  }
  JobList all;
  std::vector<specializer::NotServed> not_served;
  auto wishes = wishes_of_manifests(request, families, not_served);
  if (!wishes) return wishes.error();
  const auto shapes = wishes_of_shapes(request, families);
  if (!shapes) return shapes.error();
  wishes->insert(wishes->end(), shapes->begin(), shapes->end());
  if (auto planned = plan_all(*wishes, request, all); !planned) return planned.error();
  if (request.from_journal) {
    const auto rows = cache.journal();
    if (!rows) return rows.error();
    const auto missed = wishes_of_journal(*rows, request, families, all);
    if (auto planned = plan_all(missed, request, all); !planned) return planned.error();
  }
  WarmList list = all.take();
  list.not_served = std::move(not_served);
  list.requested = list.jobs.size();
  // Every n-th job: neighbours in a manifest take alike long, so that the shards do too.
  std::vector<WarmJob> own;
  for (std::size_t j = shard->index - 1; j < list.jobs.size(); j += shard->count) {
    own.push_back(std::move(list.jobs[j]));
  }
  list.jobs = std::move(own);
  return list;
}

}  // namespace broach::tool
