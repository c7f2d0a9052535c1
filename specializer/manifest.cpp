#include "specializer/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "specializer/bounded_json.hpp"

namespace broach::specializer {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;

// Reads one manifest; every message starts with the file and the entry that is being read.
class ManifestReader {
 public:
  ManifestReader(std::string_view file, const FamilySet& families)
      : families_(families), where_(fmt::format("manifest {}", file)) {}

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
    ManifestEntry entry;
    auto family = read_family(json);
    if (!family) return family.error();
    entry.family = *family;
    std::vector<std::string_view> members{"model", "layers", "source", "verified",
                                          "notes", "family", "shape"};
    const auto own = entry.family->manifest_members();
    members.insert(members.end(), own.begin(), own.end());
    if (auto known = only(json, members); !known) return known.error();
    if (auto texts = read_texts(json, entry.model, entry.layers, entry.source); !texts) {
      return texts.error();
    }
    auto shapes = entry.family->manifest_shapes(json);
    if (!shapes) return refused(shapes.error().message);
    entry.shapes = std::move(*shapes);
    return entry;
  }

  Result<const Family*> read_family(const Json& json) const {
    if (!json.contains("family")) return families_.all().front();
    auto name = text_of(json, "family");
    if (!name) return name.error();
    auto family = families_.named(*name);
    if (!family) return refused(family.error().message);
    return family;
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
  Result<void> only(const Json& json, const std::vector<std::string_view>& names) const {
    for (const auto& [name, value] : json.items()) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      return refused(
          fmt::format("there is no field \"{}\"; there are {}", name, fmt::join(names, ", ")));
    }
    return {};
  }

  const FamilySet& families_;
  std::string where_;
};

}  // namespace

Result<Manifest> read_manifest(std::string_view file, std::string_view text,
                               const FamilySet& families) {
  try {
    return ManifestReader(file, families).read(text);
  } catch (const std::exception& fault) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("manifest {}: {}", file, plain_words(fault.what())), ""};
  }
}

std::vector<Shape> distinct_shapes(const Manifest& manifest) {
  std::vector<Shape> shapes;
  for (const ManifestEntry& entry : manifest.entries) {
    for (const Shape& shape : entry.shapes) {
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
  }
  return shapes;
}

}  // namespace broach::specializer
