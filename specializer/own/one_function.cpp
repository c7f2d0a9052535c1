#include "specializer/own/one_function.hpp"

#include <fmt/core.h>

#include <string>

#include "specializer/own/names.hpp"

namespace broach::specializer::own {
namespace {

// A name of ours: qualified as every family's is, and the same for a function wherever it is.
constexpr std::string_view kVendor = "inline";
constexpr std::string_view kSource = "source.cu";

/// A function's name as part of a family's: lower-case letters, digits and underscores.
std::string family_part(std::string_view function) {
  std::string part = "f_";
  for (const char c : function) {
    part += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return part;
}

}  // namespace

Result<std::shared_ptr<const OwnFamily>> family_of_one(std::string_view function,
                                                       std::string_view source,
                                                       const CompilersOptions& toolkits) {
  if (!is_identifier(function)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is no C++ identifier; the name of a kernel function of the "
                             "source is",
                             function),
                 ""};
  }
  const std::string text =
      fmt::format(R"({{"family": 1, "name": "{}.{}", "sources": ["{}"], "functions": ["{}"], )"
                  R"("packs": ["cuda", "hip"], "targets": ["sm_75+", "gfx900+", "host"]}})",
                  kVendor, family_part(function), kSource, function);
  return OwnFamily::make(fmt::format("the source of {}", function), text,
                         {{std::string(kSource), std::string(source)}}, {{}, toolkits});
}

}  // namespace broach::specializer::own
