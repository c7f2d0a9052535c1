#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "broach/result.hpp"

namespace broach::bench {

/// Ends the program with an error's words: a bench has nothing to measure then.
[[noreturn]] inline void give_up(const Error& error) {
  fmt::print(stderr, "{}\n{}\n", error.message, error.detail);
  std::exit(1);
}

/// What a call gave, or the end of the program.
template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error());
  return std::move(result).value();
}
inline void must(const Result<void>& result) {
  if (!result) give_up(result.error());
}

}  // namespace broach::bench
