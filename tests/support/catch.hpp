#pragma once

// Catch2 version 2 and version 3 under one name.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace broach::test {

/// Counts a test as skipped, with its reason, for the line that the run prints at its end.
void note_skip(const std::string& reason);

}  // namespace broach::test

/// Leaves a test case that this machine cannot run; the run's last line counts it.
#define BROACH_SKIP(reason)            \
  do {                                 \
    ::broach::test::note_skip(reason); \
    SUCCEED("skipped: " << (reason));  \
    return;                            \
  } while (false)
