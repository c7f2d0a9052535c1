#pragma once

#include <string>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"

namespace broach::tool {

/// Splits `window_rows head_dim=256 …`, given as several arguments or as one quoted string, into
/// the family and the words of its shape. The family is the first word.
///
/// Errors:  kInvalidArgument when there is no word or the family is not known.
struct ShapeWords {
  std::string family;
  std::vector<std::string> words;
};
Result<ShapeWords> split_shape(const std::vector<std::string>& arguments);

/// How a shape is written, for help texts.
inline constexpr char kShapeHelp[] =
    "A shape is words, as several arguments or one quoted string:\n"
    "  window_rows head_dim=256 gqa_ratio=2 window=1024 'kv_layout=ring(1536)'\n"
    "with dtype=bf16|f16, form=decode|prefill, arith=…, p32=on, softcap=on, sinks=on, checked=on\n"
    "where they differ from the default.";

}  // namespace broach::tool
