#include "tools/broach/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "specializer/bounded_json.hpp"
#include "specializer/family.hpp"

namespace broach::tool {
namespace {

Json number(const std::optional<std::uint32_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json dims(const std::optional<std::uint32_t>& x, const std::optional<std::uint32_t>& y,
          const std::optional<std::uint32_t>& z) {
  return x && y && z ? Json{*x, *y, *z} : Json(nullptr);
}

}  // namespace

Json parsed(std::string_view json_text) {
  auto value = specializer::parse_json<Json>(json_text);
  return value ? std::move(*value) : Json(json_text);
}

Json to_json(const cache::Layer& layer) {
  return {{"kind", name_of(layer.kind)}, {"name", layer.name}};
}

Json to_json(const cache::Entry& entry) {
  return {{"key", entry.key.hex()},
          {"source_hash", entry.description.source_hash},
          {"target", entry.description.target},
          {"family", entry.description.family},
          {"shape", parsed(entry.description.shape_json)},
          {"kind", entry.description.kind},
          {"bytes", entry.bytes},
          {"compile_ms", entry.compile_ms},
          {"compiler", entry.description.compiler},
          {"layer", to_json(entry.layer)},
          {"hits", entry.hits},
          {"created_unix_ms", entry.created_unix_ms},
          {"last_used_unix_ms", entry.last_used_unix_ms}};
}

Json to_json(const LaunchLimits& limits) {
  return {
      {"function", limits.function},
      {"registers", number(limits.registers)},
      {"spill_bytes", number(limits.spill_bytes)},
      {"stack_bytes", number(limits.stack_bytes)},
      {"static_shared", number(limits.static_shared)},
      {"max_dynamic_shared", number(limits.max_dynamic_shared)},
      {"constant_bytes", number(limits.constant_bytes)},
      {"max_threads", number(limits.max_threads)},
      {"launch_bounds", number(limits.launch_bounds)},
      {"barriers", number(limits.barriers)},
      {"wave_size", number(limits.wave_size)},
      {"vgprs", number(limits.vgprs)},
      {"agprs", number(limits.agprs)},
      {"sgprs", number(limits.sgprs)},
      {"vgpr_spills", number(limits.vgpr_spills)},
      {"sgpr_spills", number(limits.sgpr_spills)},
      {"block", dims(limits.block_x, limits.block_y, limits.block_z)},
      {"dynamic_shared", number(limits.dynamic_shared)},
      {"cluster", dims(limits.cluster_x, limits.cluster_y, limits.cluster_z)},
      {"parameter_bytes", limits.parameter_bytes ? Json(*limits.parameter_bytes) : Json(nullptr)},
      {"source", limits.source}};
}

Json to_json(const cache::EntryLimits& row) {
  Json json = {{"key", row.key.hex()},
               {"target", row.description.target},
               {"family", row.description.family},
               {"shape", parsed(row.description.shape_json)}};
  json.update(to_json(row.limits));
  return json;
}

Json to_json(const cache::LayerStatus& status) {
  return {{"kind", name_of(status.layer.kind)},
          {"name", status.layer.name},
          {"usable", status.usable},
          {"why", status.why},
          {"filesystem", status.filesystem},
          {"journal", status.journal}};
}

std::string shape_text(std::string_view shape_json) {
  const Json shape = parsed(shape_json);
  if (!shape.is_object()) return std::string(shape_json);
  // The order of the family's fields; one that is off says nothing.
  std::vector<std::string> items;
  const auto add = [&](const std::string& name) {
    const auto field = shape.find(name);
    if (field == shape.end()) return;
    const std::string value = field->is_string() ? field->get<std::string>() : field->dump();
    if (value == "off" || value == "false" || value == "null") return;
    items.push_back(fmt::format("{}={}", name, value));
  };
  std::vector<std::string> order;
  const auto family_name = shape.find("family");
  const bool named = family_name != shape.end() && family_name->is_string();
  if (const auto* family =
          named ? specializer::find_family(family_name->get<std::string>()) : nullptr) {
    for (const specializer::Field& field : family->fields()) order.emplace_back(field.name);
  }
  for (const std::string& name : order) add(name);
  for (const auto& field : shape.items()) {
    const bool known = std::find(order.begin(), order.end(), field.key()) != order.end();
    if (!known && field.key() != "family") add(field.key());
  }
  return fmt::format("{}", fmt::join(items, " "));
}

std::string launch_text(const LaunchLimits& limits) {
  std::string text;
  const auto add = [&](const char* word, const std::optional<std::uint32_t>& x,
                       const std::optional<std::uint32_t>& y,
                       const std::optional<std::uint32_t>& z) {
    if (!x || !y || !z) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word, *x);
    if (*y != 1 || *z != 1) text += fmt::format("x{}x{}", *y, *z);
  };
  add("block", limits.block_x, limits.block_y, limits.block_z);
  if (limits.dynamic_shared.value_or(0) != 0) {
    text += fmt::format("{}dynamic {}", text.empty() ? "" : ", ", *limits.dynamic_shared);
  }
  add("cluster", limits.cluster_x, limits.cluster_y, limits.cluster_z);
  return text;
}

std::string short_key(const cache::Key& key) { return key.hex().substr(0, 12); }

std::string_view name_of(cache::LayerKind kind) noexcept {
  switch (kind) {
    case cache::LayerKind::kMemory:
      return "memory";
    case cache::LayerKind::kUser:
      return "user";
    case cache::LayerKind::kReadOnly:
      return "read_only";
    case cache::LayerKind::kRemote:
      return "remote";
  }
  return "unknown";
}

Result<cache::Key> find_key(cache::Cache& cache, std::string_view digits) {
  const bool hexadecimal = !digits.empty() && digits.size() <= 32 &&
                           digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!hexadecimal) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("key \"{}\" is not 1 to 32 lower-case hexadecimal digits; `broach ls` "
                             "lists keys",
                             digits),
                 ""};
  }
  auto keys = cache.keys_starting_with(digits);
  if (!keys) return keys.error();
  if (keys->empty()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("no entry's key starts with {}; `broach ls` lists keys", digits), ""};
  }
  if (keys->size() > 1) {
    std::string candidates;
    for (const cache::Key& key : *keys) candidates += key.hex() + '\n';
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} names {} entries; give more digits", digits, keys->size()),
                 candidates};
  }
  return keys->front();
}

}  // namespace broach::tool
