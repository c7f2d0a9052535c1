#include "cache/reporter.hpp"

#include <algorithm>
#include <cctype>
#include <exception>

namespace broach::cache {

std::uint64_t Counters::operator[](std::string_view name) const {
  const auto found = values.find(std::string(name));
  return found == values.end() ? 0 : found->second;
}

void Reporter::count(std::string_view event) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    ++counters_.values[std::string(event)];
  } catch (const std::exception&) {
    // A count that finds no memory is lost; the caller's work is not.
  }
}

void Reporter::fault(std::string_view event, const Error& error,
                     std::string_view consequence) noexcept {
  try {
    std::string cause(event);
    count(cause);
    const std::string_view symbol =
        error.detail.empty() ? name_of(error.reason) : std::string_view(error.detail);
    if (!symbol.empty()) {
      cause += '_';
      std::transform(symbol.begin(), symbol.end(), std::back_inserter(cause),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      count(cause);
    }
    tell_once(cause, error.message + "; " + std::string(consequence));
  } catch (const std::exception&) {
  }
}

void Reporter::tell_once(std::string_view cause, std::string_view line) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (!told_.insert(std::string(cause)).second) return;
    }
    if (notice_) notice_(line);
  } catch (...) {
    // The notice is the caller's code; what it throws must not reach a launch.
  }
}

Counters Reporter::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace broach::cache
