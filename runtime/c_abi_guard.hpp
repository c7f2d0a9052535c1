#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "broach/broach.h"
#include "broach/runtime.hpp"

/// What a broach_runtime is.
struct broach_runtime {
  explicit broach_runtime(broach::Runtime made)
      : runtime(std::move(made)), device(runtime.device_name()), target(runtime.target_name()) {}

  broach::Runtime runtime;
  std::string device;
  std::string target;
};

namespace broach::runtime {

/// Writes words about a failure into the caller's buffer, as far as they fit.
inline broach_status tell(broach_message* message, ErrorCode code, std::string_view first,
                          std::string_view rest = {}) noexcept {
  const auto status = static_cast<broach_status>(code);
  if (message == nullptr) return status;
  const std::size_t gap = rest.empty() ? 0 : 1;
  message->length = first.size() + gap + rest.size();
  if (message->text == nullptr || message->capacity == 0) return status;
  std::size_t room = message->capacity - 1;
  char* to = message->text;
  const auto append = [&](std::string_view words) {
    const std::size_t bytes = std::min(words.size(), room);
    std::memcpy(to, words.data(), bytes);
    to += bytes;
    room -= bytes;
  };
  append(first);
  if (gap != 0) append("\n");
  append(rest);
  *to = '\0';
  return status;
}

inline broach_status tell(broach_message* message, const Error& error) noexcept {
  return tell(message, error.code, error.message, error.detail);
}

/// Runs a call's body: the only place where an exception can end.
template <class Body>
broach_status guarded(broach_message* message, Body body) noexcept {
  if (message != nullptr) {
    message->length = 0;
    if (message->text != nullptr && message->capacity != 0) message->text[0] = '\0';
  }
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return tell(message, ErrorCode::kOutOfMemory, "out of host memory");
  } catch (const std::exception& fault) {
    return tell(message, ErrorCode::kInternal, fault.what());
  } catch (...) {
    return tell(message, ErrorCode::kInternal, "an unknown exception");
  }
}

}  // namespace broach::runtime
