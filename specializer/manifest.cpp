#include "specializer/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "specializer/bounded_json.hpp"
#include "specializer/shape.hpp"

namespace broach::specializer {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;

// Reads one manifest; every message starts with the file and the entry that is being read.
class ManifestReader {
 public:
  explicit ManifestReader(std::string_view file) : where_(fmt::format("manifest {}", file)) {}

  Result<Manifest> read(std::string_view text) {
    const auto parsed = parse_json<Json>(text);
    if (!parsed) return refused(parsed.error().message);
    const Json& json = *parsed;
    if (!json.is_object()) return refused("it must be a JSON object");
    if (auto known = only(json, {"manifest", "name", "what", "entries", "not_served"}); !known) {
      return known.error();
    }
    if (json.value("manifest", Json()) != Json(kVersion)) {
      return refused(fmt::format("\"manifest\" must be {}, the version of the format; it is {}",
                                 kVersion, json.value("manifest", Json()).dump()));
    }
    Manifest manifest;
    auto name = text_of(json, "name");
    if (!name) return name.error();
    manifest.name = std::move(*name);
    if (auto read = read_list(json, "entries", manifest.entries, &ManifestReader::read_entry);
        !read) {
      return read.error();
    }
    // For people: a manifest of somebody's own layers has nothing to say there.
    if (!json.contains("not_served")) return manifest;
    if (auto read =
            read_list(json, "not_served", manifest.not_served, &ManifestReader::read_not_served);
        !read) {
      return read.error();
    }
    return manifest;
  }

 private:
  Error refused(std::string message) const {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", where_, message), ""};
  }

  template <class T>
  Result<void> read_list(const Json& json, const char* field, std::vector<T>& into,
                         Result<T> (ManifestReader::*read_item)(const Json&)) {
    const auto list = json.find(field);
    if (list == json.end() || !list->is_array()) {
      return refused(fmt::format("\"{}\" must be an array", field));
    }
    const std::string file = where_;
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Json& item = (*list)[i];
      where_ = fmt::format("{}, {}[{}]", file, field, i);
      if (!item.is_object()) return refused("it must be an object");
      if (auto model = text_of(item, "model")) where_ += fmt::format(" ({})", *model);
      auto row = (this->*read_item)(item);
      if (!row) return row.error();
      into.push_back(std::move(*row));
    }
    where_ = file;
    return {};
  }

  Result<ManifestEntry> read_entry(const Json& json) {
    if (auto known = only(json, {"model", "layers", "source", "verified", "notes", "q_heads",
                                 "kv_heads", "scale", "softcap", "shape", "prefill"});
        !known) {
      return known.error();
    }
    ManifestEntry entry;
    if (auto texts = read_texts(json, entry.model, entry.layers, entry.source); !texts) {
      return texts.error();
    }
    for (auto& [field, into] :
         {std::pair{"q_heads", &entry.q_heads}, std::pair{"kv_heads", &entry.kv_heads}}) {
      const auto found = json.find(field);
      if (found == json.end()) continue;
      if (!found->is_number_unsigned() || found->get<std::uint64_t>() - 1 >= 65536) {
        return refused(fmt::format("\"{}\" is {}; 1..65536 works", field, dump(*found)));
      }
      *into = found->get<std::uint32_t>();
    }
    const Json common = json.value("shape", Json());
    if (!common.is_object()) return refused("\"shape\" must be an object of shape fields");
    Json prefill = common;
    if (const auto extra = json.find("prefill"); extra != json.end()) {
      if (!extra->is_object()) return refused("\"prefill\" must be an object of shape fields");
      prefill.update(*extra);
    }
    auto decode = read_shape(common, Form::kDecode, entry);
    if (!decode) return decode.error();
    entry.decode = *decode;
    auto for_prefill = read_shape(std::move(prefill), Form::kPrefill, entry);
    if (!for_prefill) return for_prefill.error();
    entry.prefill = *for_prefill;
    return entry;
  }

  Result<WindowRowsShape> read_shape(Json fields, Form form, const ManifestEntry& entry) {
    if (fields.contains("form")) {
      return refused("\"form\" is not a field of a manifest's shape: every entry has both forms");
    }
    fields["form"] = std::string(name_of(form));
    auto shape = window_rows_from_json(fields.dump(-1, ' ', true, Json::error_handler_t::replace));
    if (!shape) return refused(shape.error().message);
    if (auto ranged = check_ranges(*shape); !ranged) return refused(ranged.error().message);
    if (entry.q_heads && entry.kv_heads && *entry.q_heads != *entry.kv_heads * shape->gqa_ratio) {
      return refused(fmt::format("gqa_ratio={} contradicts q_heads={} over kv_heads={}",
                                 shape->gqa_ratio, *entry.q_heads, *entry.kv_heads));
    }
    return shape;
  }

  Result<NotServed> read_not_served(const Json& json) {
    if (auto known = only(json, {"model", "layers", "source", "reason"}); !known) {
      return known.error();
    }
    NotServed row;
    if (auto texts = read_texts(json, row.model, row.layers, row.source); !texts) {
      return texts.error();
    }
    auto reason = text_of(json, "reason");
    if (!reason) return reason.error();
    row.reason = std::move(*reason);
    return row;
  }

  Result<void> read_texts(const Json& json, std::string& model, std::string& layers,
                          std::string& source) {
    for (auto& [field, into] :
         {std::pair{"model", &model}, std::pair{"layers", &layers}, std::pair{"source", &source}}) {
      auto text = text_of(json, field);
      if (!text) return text.error();
      *into = std::move(*text);
    }
    return {};
  }

  Result<std::string> text_of(const Json& json, const char* field) const {
    const auto found = json.find(field);
    if (found == json.end() || !found->is_string() ||
        found->get_ref<const std::string&>().empty()) {
      return refused(fmt::format("\"{}\" must be a text that is not empty", field));
    }
    return found->get<std::string>();
  }

  // A field that is misspelt would otherwise be dropped in silence.
  Result<void> only(const Json& json, std::initializer_list<std::string_view> names) const {
    for (const auto& [name, value] : json.items()) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      return refused(
          fmt::format("there is no field \"{}\"; there are {}", name, fmt::join(names, ", ")));
    }
    return {};
  }

  static std::string dump(const Json& value) {
    return value.dump(-1, ' ', true, Json::error_handler_t::replace);
  }

  std::string where_;
};

}  // namespace

Result<Manifest> read_manifest(std::string_view file, std::string_view text) {
  try {
    return ManifestReader(file).read(text);
  } catch (const std::exception& fault) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("manifest {}: {}", file, fault.what()),
                 ""};
  }
}

std::vector<WindowRowsShape> distinct_shapes(const Manifest& manifest, Form form) {
  std::vector<WindowRowsShape> shapes;
  for (const ManifestEntry& entry : manifest.entries) {
    const WindowRowsShape& shape = entry.shape(form);
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace broach::specializer
