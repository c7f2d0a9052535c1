#include "specializer/version.hpp"

#include <fmt/core.h>

#include <charconv>
#include <system_error>

namespace broach::specializer {
namespace {

constexpr std::string_view kCuda = "CUDA ";

}  // namespace

std::string cuda_words(Version version) {
  if (!version.stated()) return "";
  return fmt::format("{}{}.{}", kCuda, version.major, version.minor);
}

Version parse_cuda_words(std::string_view text) {
  if (!text.starts_with(kCuda)) return {};
  const char* const end = text.data() + text.size();
  Version version;
  const auto major = std::from_chars(text.data() + kCuda.size(), end, version.major);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return {};
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc{} || minor.ptr != end) return {};
  return version;
}

}  // namespace broach::specializer
