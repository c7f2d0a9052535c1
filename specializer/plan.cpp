#include "specializer/plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "specializer/options.hpp"
#include "specializer/render.hpp"
#include "specializer/sources.hpp"
#include "specializer/window_rows/controls.hpp"

namespace broach::specializer {
namespace {

constexpr std::string_view kMainName = "main.cu";

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

Result<Rendered> render(const WindowRowsShape& shape, const Target& target,
                        const Variant& variant) {
  switch (shape.arith) {
    case Arith::kChunk256:
      return render_window_rows_chunk256(shape, target, variant);
    case Arith::kTile64:
      return render_window_rows_tile64(shape, target, variant);
    case Arith::kMma32:
      return render_window_rows_mma32(shape, target, variant);
    case Arith::kDefault:
      break;
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("window_rows arith={} has no source to render", name_of(shape.arith)),
               ""};
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
Result<void> check_variant(const Rendered& rendered, const WindowRowsShape& shape,
                           const Target& target, const Variant& variant) {
  if (variant.control.empty() && variant.generic == Switch::kOff) return {};
  auto plain = render(shape, target, {});
  if (!plain) return plain.error();
  if (plain->main_source != rendered.main_source) {
    const std::string_view missing =
        window_rows::missing_for(variant.control, shape, variant.generic);
    if (missing.empty()) return {};
    return Error{ErrorCode::kUnsupported,
                 fmt::format("window_rows control \"{}\" cannot change {}: it needs {}",
                             variant.control, to_words(shape), missing),
                 ""};
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("window_rows arith={} has no {}", name_of(shape.arith),
                           variant.control.empty() ? std::string("generic kernel")
                                                   : "control \"" + variant.control + "\""),
               ""};
}

// What the generic kernel takes at run time is no part of its plan: one binary serves every value.
constexpr std::string_view kRunTime[] = {"gqa_ratio", "window", "kv_layout"};
constexpr std::string_view kAnyValue = "any";

std::vector<ShapeParameter> parameters_of(const WindowRowsShape& shape, const Variant& variant) {
  std::vector<ShapeParameter> out = parameters(shape);
  if (variant.generic == Switch::kOn) {
    for (ShapeParameter& parameter : out) {
      if (std::find(std::begin(kRunTime), std::end(kRunTime), parameter.name) !=
          std::end(kRunTime)) {
        parameter.value = kAnyValue;
      }
    }
    out.push_back({"variant.generic", "on"});
  }
  if (!variant.control.empty()) out.push_back({"variant.control", variant.control});
  return out;
}

std::string json_of(const WindowRowsShape& shape, const Variant& variant) {
  if (variant.control.empty() && variant.generic == Switch::kOff) return to_json(shape);
  auto json = nlohmann::json::parse(to_json(shape));
  if (variant.generic == Switch::kOn) {
    for (const std::string_view name : kRunTime) json[std::string(name)] = kAnyValue;
    json["variant.generic"] = "on";
  }
  if (!variant.control.empty()) json["variant.control"] = variant.control;
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<Plan> plan(const WindowRowsShape& asked, const Target& target, const Variant& variant) {
  if (auto served = check(asked, target); !served) return served.error();
  const WindowRowsShape shape = resolved(asked, target);
  auto rendered = render(shape, target, variant);
  if (!rendered) return rendered.error();
  if (auto known = check_variant(*rendered, shape, target, variant); !known) return known.error();
  for (const KernelEntry& entry : rendered->entries) {
    if (auto fits = check_geometry(entry, target); !fits) return fits.error();
  }
  auto sources = close_over_includes(kMainName, std::move(rendered->main_source), target.vendor,
                                     kKernelSources);
  if (!sources) return sources.error();

  Plan plan;
  plan.family = "window_rows";
  plan.target = target;
  plan.shape_json = json_of(shape, variant);
  plan.parameters = parameters_of(shape, variant);
  plan.sources = std::move(*sources);
  plan.options = compiler_options(target);
  plan.entries = std::move(rendered->entries);
  plan.kind = kind_of(target.vendor);
  return plan;
}

}  // namespace broach::specializer
