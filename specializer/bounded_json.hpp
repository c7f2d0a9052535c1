#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "broach/result.hpp"

namespace broach::specializer {

/// Deeper than anything that is written here. Whoever copies, prints or compares a JSON value calls
/// itself for what is inside, so that an unbounded one could end the process's stack.
inline constexpr int kMaxJsonDepth = 32;

/// What the library's exception says, without its name and number: "[json.exception.…] ".
inline std::string_view plain_words(std::string_view what) {
  const std::size_t end = what.starts_with("[json.exception") ? what.find("] ") : what.npos;
  return end == what.npos ? what : what.substr(end + 2);
}

/// Reads JSON text that others could have written; `Json` is a nlohmann::basic_json.
///
/// Errors:  kInvalidArgument: "line 3 is not JSON: …", "it is not JSON: …" where a number fits no
///          type, "it nests deeper than 32 levels".
template <class Json>
Result<Json> parse_json(std::string_view text) {
  bool too_deep = false;
  const auto watch = [&](int depth, typename Json::parse_event_t event, Json&) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    too_deep = too_deep || (opens && depth >= kMaxJsonDepth);
    return !too_deep;  // What is turned down is read over and kept nowhere.
  };
  try {
    Json json = Json::parse(text, watch);
    if (!too_deep) return json;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("it nests deeper than {} levels", kMaxJsonDepth), ""};
  } catch (const typename Json::parse_error& fault) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(fault.byte, text.size()));
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("line {} is not JSON: {}", 1 + std::count(text.begin(), end, '\n'),
                             plain_words(fault.what())),
                 ""};
  } catch (const typename Json::exception& fault) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("it is not JSON: {}", plain_words(fault.what())), ""};
  }
}

}  // namespace broach::specializer
