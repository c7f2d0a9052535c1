#include "specializer/json_text.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace broach::specializer {

std::string json_text(std::string_view value) {
  // A string has no children, so that its destructor allocates nothing.
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

JsonObject& JsonObject::set(std::string_view name, std::string_view value) {
  return set_json(name, json_text(value));
}

JsonObject& JsonObject::set(std::string_view name, std::uint64_t value) {
  return set_json(name, std::to_string(value));
}

JsonObject& JsonObject::set_json(std::string_view name, std::string json) {
  members_.insert_or_assign(std::string(name), std::move(json));
  return *this;
}

std::string JsonObject::text() const {
  std::string text = "{";
  for (const auto& [name, json] : members_) {
    if (text.size() > 1) text += ',';
    text.append(json_text(name)).append(1, ':').append(json);
  }
  return text += '}';
}

}  // namespace broach::specializer
