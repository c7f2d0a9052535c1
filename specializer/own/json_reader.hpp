#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broach/result.hpp"
#include "specializer/own/json_place.hpp"

namespace broach::specializer::own {

/// Reads members of a JSON text and says where a fault is: file, line, member, value.
///
/// The first fault is kept, and what is read after it is defaults: a reader reads all it wants and
/// asks `fault()` once at the end.
class JsonReader {
 public:
  using Json = nlohmann::json;

  JsonReader(std::string_view file, std::string_view text) : file_(file), text_(text) {}

  /// Keeps a fault at the value that is being read, unless there is one already.
  void refuse(std::string_view message) {
    if (fault_) return;
    const std::string where = path_text(path_);
    fault_ = Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} line {}: {}{}{}", file_, line_of(text_, path_), where,
                               where.empty() ? "" : ": ", message),
                   ""};
  }
  bool failed() const noexcept { return fault_.has_value(); }
  const std::optional<Error>& fault() const noexcept { return fault_; }

  /// Reads what `read` reads as the value of a step: faults name it.
  template <class Read>
  void at(JsonStep step, Read read) {
    path_.push_back(std::move(step));
    read();
    path_.pop_back();
  }

  /// Refuses members that an object may not have, and a value that is no object.
  bool object_of(const Json& json, std::initializer_list<std::string_view> members) {
    if (!json.is_object()) {
      refuse(fmt::format("{} is no object", shown(json)));
      return false;
    }
    for (const auto& [name, value] : json.items()) {
      if (std::find(members.begin(), members.end(), name) != members.end()) continue;
      at(name, [&] {
        refuse(fmt::format("there is no such member; there are {}", fmt::join(members, ", ")));
      });
      return false;
    }
    return true;
  }

  /// Calls `read(value)` for a member that is there.
  template <class Read>
  bool member(const Json& object, const std::string& name, Read read) {
    const auto found = object.find(name);
    if (found == object.end()) return false;
    at(name, [&] { read(*found); });
    return true;
  }

  template <class Read>
  void required(const Json& object, const std::string& name, std::string_view what, Read read) {
    if (!member(object, name, read)) refuse(fmt::format("\"{}\" is missing: {}", name, what));
  }

  /// Calls `read(value)` for each element, one at least unless `none` may be.
  template <class Read>
  void array(const Json& json, std::size_t most, Read read) {
    if (!json.is_array()) return refuse(fmt::format("{} is no array", shown(json)));
    if (json.empty()) return refuse("the array is empty; one element at least works");
    if (json.size() > most) {
      return refuse(fmt::format("{} elements; {} at most work", json.size(), most));
    }
    for (std::size_t i = 0; i < json.size() && !failed(); ++i) at(i, [&] { read(json[i]); });
  }

  std::string text(const Json& json) {
    if (json.is_string() && !json.get_ref<const std::string&>().empty()) {
      const auto& value = json.get_ref<const std::string&>();
      // What goes into sources, keys and messages is one line of printable text.
      const bool plain =
          std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c != '\x7f'; });
      if (plain && value.size() <= kMaxTextBytes) return value;
    }
    refuse(fmt::format("{} is no text of one line, 1 to {} bytes", shown(json), kMaxTextBytes));
    return {};
  }

  std::uint32_t number(const Json& json, std::uint32_t least = 0,
                       std::uint32_t most = std::numeric_limits<std::uint32_t>::max()) {
    if (json.is_number_unsigned()) {
      const auto value = json.get<std::uint64_t>();
      if (value >= least && value <= most) return static_cast<std::uint32_t>(value);
    }
    refuse(
        fmt::format("{} does not work; whole numbers from {} to {} do", shown(json), least, most));
    return least;
  }

  bool boolean(const Json& json) {
    if (json.is_boolean()) return json.get<bool>();
    refuse(fmt::format("{} does not work; true and false do", shown(json)));
    return false;
  }

  /// A value for a message, shortened.
  static std::string shown(const Json& json) {
    constexpr std::size_t kMost = 60;
    std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > kMost) text = text.substr(0, kMost) + "…";
    return text;
  }

 private:
  static constexpr std::size_t kMaxTextBytes = 1024;

  std::string_view file_;
  std::string_view text_;
  std::vector<JsonStep> path_;
  std::optional<Error> fault_;
};

}  // namespace broach::specializer::own
