#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace broach::specializer {

/// A string as JSON: in quotes, escaped; bytes that are no UTF-8 are replaced.
std::string json_text(std::string_view value);

/// Writes the text of a JSON object, its names in order.
///
/// For what is written where memory may be out: destroying a nlohmann::json allocates, and ends the
/// process where that fails.
class JsonObject {
 public:
  /// A value that was given before is replaced.
  JsonObject& set(std::string_view name, std::string_view value);
  JsonObject& set(std::string_view name, std::uint64_t value);
  JsonObject& set_json(std::string_view name, std::string json);  ///< JSON as it is.

  std::string text() const;

 private:
  std::map<std::string, std::string, std::less<>> members_;
};

}  // namespace broach::specializer
