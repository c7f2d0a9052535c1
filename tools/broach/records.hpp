#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cache/cache.hpp"
#include "tools/broach/output.hpp"

namespace broach::tool {

/// JSON text of our own as a value; a JSON string of it where it does not parse.
Json parsed(std::string_view json_text);

/// Where something was found: kind, name.
Json to_json(const cache::Layer& layer);
/// An index row: key, source_hash, target, family, shape, bytes, compile_ms, compiler, layer, hits…
Json to_json(const cache::Entry& entry);
/// A limit row: key, target, function, registers, spill_bytes… null where it is not stated.
Json to_json(const cache::EntryLimits& row);
Json to_json(const LaunchLimits& limits);
Json to_json(const cache::LayerStatus& status);

/// "head_dim=256 gqa_ratio=2 window=1024 kv_layout=ring(1536) …" from a shape's canonical JSON,
/// leaving out what is off or default.
std::string shape_text(std::string_view shape_json);

/// The first 12 digits: enough to tell entries apart on a screen.
/// What every launch of a function has, where the kernel states it: "block 32x4x2, dynamic 98304,
/// cluster 2"; empty where it states nothing.
std::string launch_text(const LaunchLimits& limits);

std::string short_key(const cache::Key& key);

std::string_view name_of(cache::LayerKind kind) noexcept;

/// The one key that starts with the given digits.
///
/// Errors:  kInvalidArgument when they are not hexadecimal or name several; kNotFound.
Result<cache::Key> find_key(cache::Cache& cache, std::string_view digits);

}  // namespace broach::tool
