#include "tools/broach/cache_diff.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "cache/limit_fields.hpp"
#include "tools/broach/layer_alone.hpp"

namespace broach::tool {
namespace {

/// What a limit's growth fails. Spilled scalars are not part of the bytes: they go to vector
/// registers first.
Gate gate_of(std::string_view field) {
  if (field == "registers") return Gate::kRegisters;
  const bool spills = field == "spill_bytes" || field == "vgpr_spills" || field == "sgpr_spills";
  return spills ? Gate::kSpills : Gate::kNone;
}

using Plan = std::tuple<std::string, std::string, std::string>;

Plan plan_of(const cache::Object& object) {
  return {object.description.family, object.description.target, object.description.shape_json};
}

/// The object of each plan that was made last; the key settles a tie.
std::map<Plan, cache::Object> newest(std::vector<cache::Object> objects, std::uint64_t& passed_by) {
  std::map<Plan, cache::Object> plans;
  for (cache::Object& object : objects) {
    const auto [at, added] = plans.try_emplace(plan_of(object), object);
    if (added) continue;
    ++passed_by;
    const auto age = [](const cache::Object& o) {
      return std::tie(o.provenance.created_unix_ms, o.key.key);
    };
    if (age(at->second) < age(object)) at->second = std::move(object);
  }
  return plans;
}

Json number(const std::optional<std::uint32_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void compare_functions(const cache::Object& before, const cache::Object& after,
                       std::vector<FieldChange>& changes) {
  std::map<std::string, std::pair<const LaunchLimits*, const LaunchLimits*>> functions;
  for (const LaunchLimits& limits : before.limits) functions[limits.function].first = &limits;
  for (const LaunchLimits& limits : after.limits) functions[limits.function].second = &limits;
  for (const auto& [name, sides] : functions) {
    const auto& [was, is] = sides;
    if (was == nullptr || is == nullptr) {
      changes.push_back({name, "present", was != nullptr, is != nullptr, Gate::kNone});
    }
    // A function that is new is measured from nothing, so that its spills are not overlooked.
    const LaunchLimits none;
    for (const cache::LimitField& field : cache::kLimitFields) {
      const auto& old_value = (was == nullptr ? none : *was).*field.member;
      const auto& new_value = (is == nullptr ? none : *is).*field.member;
      if (old_value == new_value) continue;
      changes.push_back({name, std::string(field.name), number(old_value), number(new_value),
                         gate_of(field.name)});
    }
    // An object from before they were read has none: that is no change.
    const auto& old_sizes = (was == nullptr ? none : *was).parameter_bytes;
    const auto& new_sizes = (is == nullptr ? none : *is).parameter_bytes;
    if (old_sizes && new_sizes && *old_sizes != *new_sizes) {
      changes.push_back({name, std::string(cache::kParameterField), Json(*old_sizes),
                         Json(*new_sizes), Gate::kNone});
    }
  }
}

std::vector<FieldChange> differences(const cache::Object& before, const cache::Object& after) {
  std::vector<FieldChange> changes;
  const auto compare_field = [&](const char* name, const Json& was, const Json& is, Gate gate) {
    if (was != is) changes.push_back({"", name, was, is, gate});
  };
  compare_field("compiler", before.description.compiler, after.description.compiler, Gate::kNone);
  compare_field("source_hash", before.description.source_hash, after.description.source_hash,
                Gate::kNone);
  compare_field("payload_bytes", before.payload.size(), after.payload.size(), Gate::kBytes);
  compare_functions(before, after, changes);
  return changes;
}

cache::Object without_payload(cache::Object object) {
  object.payload = {};
  return object;
}

/// Objects that do not check out are an error: a comparison without them would be no gate.
Result<std::vector<cache::Object>> read_all(cache::Cache& cache,
                                            const std::vector<cache::Key>& keys,
                                            std::string_view place) {
  std::vector<cache::Object> objects;
  for (const cache::Key& key : keys) {
    auto object = cache.read(key);
    if (!object) {
      return Error{object.error().code,
                   fmt::format("{} in {}: {}", key.hex(), place, object.error().message),
                   object.error().detail, object.error().reason};
    }
    if (*object) objects.push_back(std::move(**object));  // Else it was evicted meanwhile.
  }
  return objects;
}

}  // namespace

std::string_view name_of(Gate gate) noexcept {
  switch (gate) {
    case Gate::kSpills:
      return "spills";
    case Gate::kRegisters:
      return "registers";
    case Gate::kBytes:
      return "bytes";
    case Gate::kNone:
      break;
  }
  return "";
}

bool FieldChange::grew() const {
  if (!after.is_number()) return false;
  const auto now = after.get<std::uint64_t>();
  if (before.is_number()) return now > before.get<std::uint64_t>();
  return gate == Gate::kSpills && now > 0;
}

CacheDiff compare(std::vector<cache::Object> before, std::vector<cache::Object> after) {
  CacheDiff diff;
  auto was = newest(std::move(before), diff.passed_by);
  auto is = newest(std::move(after), diff.passed_by);
  for (auto& [plan, object] : was) {
    const auto match = is.find(plan);
    if (match == is.end()) {
      diff.only_before.push_back(without_payload(std::move(object)));
      continue;
    }
    auto fields = differences(object, match->second);
    if (fields.empty()) {
      ++diff.same;
    } else {
      diff.changed.push_back(
          {object.description, object.key.key, match->second.key.key, std::move(fields)});
    }
    is.erase(match);
  }
  for (auto& [plan, object] : is) {
    diff.only_after.push_back(without_payload(std::move(object)));
  }
  return diff;
}

Result<std::vector<cache::Object>> objects_in(const std::string& place, const Options& options) {
  const auto opened = open_alone(place, options, cache::BundleTrust::kSignature);
  if (!opened) return opened.error();
  const auto keys = (*opened)->keys_starting_with("");
  if (!keys) return keys.error();
  return read_all(**opened, *keys, place);
}

Result<std::vector<cache::Object>> objects_made_by(std::string_view toolchain,
                                                   cache::Cache& cache) {
  const auto entries = cache.entries();
  if (!entries) return entries.error();
  std::set<std::string> named;
  std::set<std::string> known;
  for (const cache::Entry& entry : *entries) {
    const std::string& compiler = entry.description.compiler;
    known.insert(compiler);
    if (compiler.find(toolchain) != std::string::npos) named.insert(compiler);
  }
  if (named.contains(std::string(toolchain))) named = {std::string(toolchain)};
  if (named.size() != 1) {
    return Error{named.empty() ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is no directory and no bundle, and names {} of the toolchains "
                             "that the cache has binaries of: {}",
                             toolchain, named.empty() ? "none" : "more than one",
                             fmt::join(named.empty() ? known : named, "; ")),
                 ""};
  }
  std::vector<cache::Key> keys;
  for (const cache::Entry& entry : *entries) {
    if (entry.description.compiler == *named.begin()) keys.push_back(entry.key);
  }
  return read_all(cache, keys, *named.begin());
}

}  // namespace broach::tool
