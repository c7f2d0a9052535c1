#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "cache/key.hpp"
#include "specializer/family.hpp"
#include "specializer/shape.hpp"
#include "specializer/target.hpp"

namespace broach::specializer {

/// A file of a plan under its virtual name. The bytes live in the library or in the plan.
struct SourceFile {
  std::string name;
  std::string bytes;
};

enum class ArtifactKind : std::uint8_t { kCubin, kCodeObject, kHostSharedObject };
std::string_view name_of(ArtifactKind kind) noexcept;

/// Everything that decides a binary but the compiler: complete and deterministic.
///
/// The same shape and target give the same plan in any process on any machine; no path, clock,
/// pointer, locale or environment enters it.
struct Plan {
  std::string family;
  Target target;
  std::string shape_json;
  std::vector<ShapeParameter> parameters;
  std::vector<SourceFile> sources;   ///< The rendered main source first, then what it includes.
  std::vector<std::string> options;  ///< In order, without any path.
  std::vector<KernelEntry> entries;
  ArtifactKind kind = ArtifactKind::kCubin;
  Refusals refusals;  ///< Decides no byte of the binary, so it is no part of the key.
};

/// Makes the plan of a shape where it is served, which it does not check again.
///
/// A generic variant's plan is the same for every value of the family's run-time fields.
///
/// Errors:  kUnsupported for a variant that the kernel lacks; kLimitExceeded when no launch on the
///          target could fit.
Result<Plan> plan(const ServedShape& shape, const Variant& variant = {});

/// The key of a plan compiled by the compiler named `compiler_identity`.
cache::KeyRecord key_of(const Plan& plan, std::string_view compiler_identity);

/// 32 hex digits over every source's name and bytes.
std::string source_hash(const Plan& plan);

}  // namespace broach::specializer
