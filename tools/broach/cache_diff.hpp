#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "broach/options.hpp"
#include "broach/result.hpp"
#include "cache/cache.hpp"
#include "cache/object.hpp"
#include "tools/broach/output.hpp"

namespace broach::tool {

/// What a gate can be set on.
enum class Gate : std::uint8_t { kNone, kSpills, kRegisters, kBytes };

std::string_view name_of(Gate gate) noexcept;

/// One figure that two binaries of a plan state differently; null on a side that does not state it.
struct FieldChange {
  std::string function;  ///< Empty: the binary's own.
  std::string field;     ///< "registers", "payload_bytes"…
  Json before;
  Json after;
  Gate gate = Gate::kNone;

  /// Whether it is larger now. Spills that were not stated count as none; another figure that one
  /// side does not state cannot be said to have grown.
  bool grew() const;
};

/// A plan that both caches hold, and what differs.
struct EntryChange {
  cache::Description plan;  ///< Its family, target and shape; the rest is the first cache's.
  cache::Key before;
  cache::Key after;
  std::vector<FieldChange> fields;
};

/// What distinguishes one cache from another, ordered by family, target and shape.
struct CacheDiff {
  std::vector<EntryChange> changed;
  std::vector<cache::Object> only_before;  ///< Without payloads.
  std::vector<cache::Object> only_after;
  std::uint64_t same = 0;       ///< Plans of both that differ in nothing.
  std::uint64_t passed_by = 0;  ///< Objects older than another of their plan in the same cache.
};

/// Compares what two caches hold for the same family, target, shape and function. Keys are not
/// compared: other sources or another toolkit give other keys. Of several objects for one plan in
/// one cache, the one made last counts.
CacheDiff compare(std::vector<cache::Object> before, std::vector<cache::Object> after);

/// Every object of a cache directory or bundle, read as a layer that nothing is written to.
///
/// Errors:  as open_alone; kDamaged for an object that does not check out.
Result<std::vector<cache::Object>> objects_in(const std::string& place, const Options& options);

/// Every object of a cache that one compiler made, by its name or a part that no other's has.
///
/// Errors:  kNotFound, kInvalidArgument when no name or several have the part, naming them;
///          kDamaged as objects_in.
Result<std::vector<cache::Object>> objects_made_by(std::string_view toolchain, cache::Cache& cache);

}  // namespace broach::tool
