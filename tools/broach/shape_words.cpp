#include "tools/broach/shape_words.hpp"

#include <fmt/core.h>

#include <sstream>

namespace broach::tool {

Result<ShapeWords> split_shape(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    std::istringstream stream(argument);
    for (std::string word; stream >> word;) words.push_back(word);
  }
  if (words.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "no shape; write one as: window_rows head_dim=256 gqa_ratio=2 window=1024", ""};
  }
  ShapeWords shape{words.front(), {words.begin() + 1, words.end()}};
  if (shape.family != "window_rows") {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("unknown family \"{}\"; the families are: window_rows", shape.family),
                 ""};
  }
  return shape;
}

}  // namespace broach::tool
