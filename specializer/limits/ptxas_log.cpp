#include "specializer/limits/ptxas_log.hpp"

#include <charconv>

namespace broach::specializer {
namespace {

// The decimal number that ends right before `end`.
std::optional<std::uint32_t> number_before(std::string_view line, std::size_t end) {
  std::size_t start = end;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
  std::uint32_t value = 0;
  const auto result = std::from_chars(line.data() + start, line.data() + end, value);
  if (start == end || result.ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> figure(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  return at == std::string_view::npos ? std::nullopt : number_before(line, at);
}

}  // namespace

std::optional<PtxasProperties> ptxas_properties(std::string_view log, std::string_view function) {
  constexpr std::string_view kHeading = "Function properties for ";
  for (std::size_t at = 0; (at = log.find(kHeading, at)) != std::string_view::npos;) {
    at += kHeading.size();
    const std::size_t name_end = log.find('\n', at);
    if (name_end == std::string_view::npos) return std::nullopt;
    if (log.substr(at, name_end - at) != function) continue;
    const std::string_view line =
        log.substr(name_end + 1, log.find('\n', name_end + 1) - name_end - 1);
    const auto stack = figure(line, " bytes stack frame");
    const auto stores = figure(line, " bytes spill stores");
    const auto loads = figure(line, " bytes spill loads");
    if (!stack || !stores || !loads) return std::nullopt;
    return PtxasProperties{*stack, *stores, *loads};
  }
  return std::nullopt;
}

}  // namespace broach::specializer
