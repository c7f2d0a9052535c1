#include "specializer/plan.hpp"

#include <fmt/core.h>

#include "specializer/shape_json.hpp"
#include "specializer/sources.hpp"

namespace broach::specializer {
namespace {

ArtifactKind kind_of(Vendor vendor) {
  switch (vendor) {
    case Vendor::kNvidia:
      return ArtifactKind::kCubin;
    case Vendor::kAmd:
      return ArtifactKind::kCodeObject;
    case Vendor::kHost:
      return ArtifactKind::kHostSharedObject;
  }
  return ArtifactKind::kCubin;
}

// A plan that no launch could satisfy is refused here, before anything is compiled.
Result<void> check_geometry(const KernelEntry& entry, const Target& target) {
  if (entry.block_threads > target.max_threads_per_block) {
    return Error{ErrorCode::kLimitExceeded,
                 fmt::format("{} needs {} threads a block; {} has {}", entry.function,
                             entry.block_threads, target.name, target.max_threads_per_block),
                 ""};
  }
  if (entry.dynamic_shared_bytes > target.max_shared_bytes) {
    return Error{
        ErrorCode::kLimitExceeded,
        fmt::format("{} needs {} bytes of dynamic shared memory a block; {} has {}", entry.function,
                    entry.dynamic_shared_bytes, target.name, target.max_shared_bytes),
        ""};
  }
  return {};
}

// A variant must differ from the kernel that engines get: one that the source does not know would
// otherwise be that kernel under another name.
Result<void> check_variant(const Rendered& rendered, const ServedShape& shape,
                           const Variant& variant) {
  if (variant.control.empty() && variant.generic == Switch::kOff) return {};
  const Family& family = shape.family();
  auto plain = family.render(shape, {});
  if (!plain) return plain.error();
  if (plain->main_source == rendered.main_source) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} has no {}", to_text(shape.shape()),
                             variant.control.empty() ? std::string("generic kernel")
                                                     : "control \"" + variant.control + "\""),
                 ""};
  }
  const std::string_view missing = family.control_needs(variant.control, shape, variant);
  if (missing.empty()) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} control \"{}\" cannot change {}: it needs {}", family.name(),
                           variant.control, to_text(shape.shape()), missing),
               ""};
}

// What the generic kernel takes at run time is no part of its plan: one binary serves every value.
constexpr std::string_view kAnyValue = "any";

std::vector<ShapeParameter> parameters_of(const Shape& shape, const Variant& variant) {
  std::vector<ShapeParameter> out = parameters(shape);
  if (variant.generic == Switch::kOn) {
    const auto fields = shape.family().fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].in_generic == InGeneric::kRunTime) out[i].value = kAnyValue;
    }
    out.push_back({"variant.generic", "on"});
  }
  if (!variant.control.empty()) out.push_back({"variant.control", variant.control});
  return out;
}

std::string json_of(const Shape& shape, const Variant& variant) {
  JsonObject members = json_members(shape);
  if (variant.generic == Switch::kOn) {
    for (const Field& field : shape.family().fields()) {
      if (field.in_generic == InGeneric::kRunTime) members.set(field.name, kAnyValue);
    }
    members.set("variant.generic", "on");
  }
  if (!variant.control.empty()) members.set("variant.control", variant.control);
  return members.text();
}

}  // namespace

Result<Plan> plan(const ServedShape& shape, const Variant& variant) {
  const Target& target = shape.target();
  auto rendered = shape.family().render(shape, variant);
  if (!rendered) return rendered.error();
  if (auto known = check_variant(*rendered, shape, variant); !known) return known.error();
  for (const KernelEntry& entry : rendered->entries) {
    if (auto fits = check_geometry(entry, target); !fits) return fits.error();
  }
  auto sources = close_over_includes(rendered->main_name, std::move(rendered->main_source),
                                     target.vendor, shape.family().files());
  if (!sources) return sources.error();
  auto options = shape.family().options(target);
  if (!options) return options.error();

  Plan plan;
  plan.family = shape.family().name();
  plan.target = target;
  plan.shape_json = json_of(shape.shape(), variant);
  plan.parameters = parameters_of(shape.shape(), variant);
  plan.sources = std::move(*sources);
  plan.options = *std::move(options);
  plan.entries = std::move(rendered->entries);
  plan.kind = kind_of(target.vendor);
  plan.refusals = shape.family().refusals();
  return plan;
}

}  // namespace broach::specializer
