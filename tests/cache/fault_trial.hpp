#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tests/cache/fault_calls.hpp"
#include "tests/cache/samples.hpp"

namespace broach::cache::test {

/// Other places of a cache, made once and the same for every trial.
struct Surroundings {
  explicit Surroundings(const std::filesystem::path& below);

  std::filesystem::path image;   ///< A directory with the object "layered".
  std::filesystem::path shared;  ///< One that others can write, with "shared", which is signed.
  std::filesystem::path bundle;  ///< A signed bundle with "bundled".
  std::filesystem::path keys;    ///< The signer's key, trusted.
  /// A cache as an enemy would make it: whole objects under the names of "stored" and "made" that
  /// hold other bytes.
  std::filesystem::path planted;
};

/// One life of a process with a fault in it, and what is left.
struct Trial {
  std::filesystem::path dir;  ///< The trial's own; its cache is below.
  const Surroundings& around;
  Fault fault;
  int failures = 0;

  std::filesystem::path cache() const { return dir / "cache"; }
  void check(bool held, std::string_view what);
};

/// What a process does that looks up, compiles and lists, with the fault somewhere in it. Returns
/// how many faults there were.
int requests_under_fault(Trial& trial);

/// The same with read-only layers: look-ups in each, a promotion, a compile that fails, an export.
int layers_under_fault(Trial& trial);

/// The same with a remote that has "made", signed.
int remote_under_fault(Trial& trial, const std::string& url);

/// That no request fails once the fault is gone, and nothing damaged or forgotten is left.
void afterwards(Trial& trial);

}  // namespace broach::cache::test
