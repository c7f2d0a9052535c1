#include "specializer/window_rows/manifest.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "specializer/shape_json.hpp"
#include "specializer/window_rows/serve.hpp"
#include "specializer/window_rows/shape.hpp"

namespace broach::specializer::window_rows {
namespace {

using Json = nlohmann::json;

Error refused(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message), ""};
}

Result<std::optional<std::uint32_t>> heads(const Json& entry, const char* member) {
  const auto found = entry.find(member);
  if (found == entry.end()) return std::optional<std::uint32_t>();
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() - 1 >= 65536) {
    return refused(fmt::format("\"{}\" is {}; 1..65536 works", member,
                               found->dump(-1, ' ', true, Json::error_handler_t::replace)));
  }
  return std::optional(found->get<std::uint32_t>());
}

// "prefill", or its alias.
Result<const Json*> prefill_member(const Json& entry) {
  const auto prefill = entry.find("prefill"), prompt = entry.find("prompt");
  if (prefill != entry.end() && prompt != entry.end()) {
    return refused("\"prefill\" and its alias \"prompt\" are both given");
  }
  const auto found = prefill != entry.end() ? prefill : prompt;
  if (found == entry.end()) return static_cast<const Json*>(nullptr);
  if (!found->is_object()) {
    return refused(fmt::format("\"{}\" must be an object of shape fields", found.key()));
  }
  return &*found;
}

Result<WindowRowsShape> read(const Json& fields, Form form) {
  if (fields.contains("form")) {
    return refused("\"form\" is not a field of a manifest's shape: every entry has both forms");
  }
  auto shape = shape_from_json(family(), fields);
  if (!shape) return shape.error();
  auto typed = typed_of<WindowRowsShape>(*shape);
  typed.form = form;
  if (auto ranged = check_ranges(typed); !ranged) return ranged.error();
  return typed;
}

// A prefill with what may differ as in the decode. By default both are the target's tile64, whose
// name alone does not say which: a default and a name differ.
WindowRowsShape levelled(WindowRowsShape shape) {
  shape.form = Form::kDecode;
  shape.kv_layout = {};
  shape.checked = Switch::kOff;
  return shape;
}

Result<void> check_same_bits(const WindowRowsShape& decode, const WindowRowsShape& prefill) {
  const Shape one = shape_of(levelled(decode)), other = shape_of(levelled(prefill));
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    if (one[i] == other[i]) continue;
    return refused(fmt::format(
        "{0}={1} for prefill and {0}={2} for decode would give one layer two sets of bits; one "
        "value in \"shape\" works, and \"prefill\" may differ in kv_layout and checked",
        kFields[i].name, value_text(kFields[i], other[i]), value_text(kFields[i], one[i])));
  }
  return {};
}

}  // namespace

Result<std::vector<Shape>> shapes_of_entry(const Json& entry) {
  auto q_heads = heads(entry, "q_heads");
  if (!q_heads) return q_heads.error();
  auto kv_heads = heads(entry, "kv_heads");
  if (!kv_heads) return kv_heads.error();
  const auto common = entry.find("shape");
  if (common == entry.end() || !common->is_object()) {
    return refused("\"shape\" must be an object of shape fields");
  }
  auto decode = read(*common, Form::kDecode);
  if (!decode) return decode.error();
  auto differs = prefill_member(entry);
  if (!differs) return differs.error();
  WindowRowsShape prefill = *decode;
  prefill.form = Form::kPrefill;
  if (*differs != nullptr) {
    Json fields = *common;
    fields.update(**differs);
    auto read_prefill = read(fields, Form::kPrefill);
    if (!read_prefill) return read_prefill.error();
    prefill = *read_prefill;
  }
  if (auto ranged = check_ranges(prefill); !ranged) return ranged.error();
  for (const WindowRowsShape& shape : {*decode, prefill}) {
    if (!*q_heads || !*kv_heads || **q_heads == **kv_heads * shape.gqa_ratio) continue;
    return refused(fmt::format("gqa_ratio={} contradicts q_heads={} over kv_heads={}",
                               shape.gqa_ratio, **q_heads, **kv_heads));
  }
  if (auto same = check_same_bits(*decode, prefill); !same) return same.error();
  return std::vector<Shape>{shape_of(*decode), shape_of(prefill)};
}

}  // namespace broach::specializer::window_rows
