#include "specializer/window_rows/served.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "specializer/shape.hpp"

namespace broach::specializer::window_rows {
namespace {

// One row a kernel that exists: add a row when one lands, and nothing else.
struct Kernel {
  Form form;
  Arith arith;
  KvLayoutKind layout;
};

constexpr Kernel kKernels[] = {
    {Form::kDecode, Arith::kChunk256, KvLayoutKind::kLinear},
    {Form::kDecode, Arith::kChunk256, KvLayoutKind::kRing},
    {Form::kDecode, Arith::kChunk256, KvLayoutKind::kPaged},
    {Form::kDecode, Arith::kTile64, KvLayoutKind::kLinear},
    {Form::kDecode, Arith::kTile64, KvLayoutKind::kRing},
    {Form::kDecode, Arith::kTile64, KvLayoutKind::kPaged},
    {Form::kPrefill, Arith::kTile64, KvLayoutKind::kLinear},
    {Form::kPrefill, Arith::kTile64, KvLayoutKind::kRing},
    {Form::kPrefill, Arith::kTile64, KvLayoutKind::kPaged},
    {Form::kPrefill, Arith::kMma32, KvLayoutKind::kLinear},
    {Form::kPrefill, Arith::kMma32, KvLayoutKind::kRing},
    {Form::kPrefill, Arith::kMma32, KvLayoutKind::kPaged},
};

// tile64 and mma32 are made of mma.sync steps: chips that have them, and the host that models them.
bool has_steps(const Target& target) {
  return target.mma_step == MmaStep::kTwoK8 || target.mma_step == MmaStep::kOneK16;
}

bool runs_on(const Kernel& kernel, const Target& target) {
  return kernel.arith == Arith::kChunk256 || has_steps(target);
}

std::string existing(const Target& target) {
  std::string words;
  for (const Kernel& kernel : kKernels) {
    if (!runs_on(kernel, target)) continue;
    words += fmt::format("{}form={} arith={} kv_layout={}", words.empty() ? "" : "; ",
                         name_of(kernel.form), name_of(kernel.arith), name_of(kernel.layout));
  }
  return words;
}

}  // namespace

Arith default_arith(Form form, const Target& target) {
  // A decode gives its prefill's bits wherever the prefill's arithmetic has a kernel.
  const bool is_prefill = form == Form::kPrefill;
  return is_prefill || has_steps(target) ? Arith::kTile64 : Arith::kChunk256;
}

Result<void> check_served(const WindowRowsShape& shape, const Target& target) {
  const Arith arith =
      shape.arith == Arith::kDefault ? default_arith(shape.form, target) : shape.arith;
  const bool exists =
      std::any_of(std::begin(kKernels), std::end(kKernels), [&](const Kernel& kernel) {
        return kernel.form == shape.form && kernel.arith == arith &&
               kernel.layout == shape.kv_layout.kind && runs_on(kernel, target);
      });
  if (exists) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("window_rows form={} arith={} kv_layout={} has no kernel yet on {}; "
                           "these have: {}",
                           name_of(shape.form), name_of(arith), name_of(shape.kv_layout.kind),
                           target.name, existing(target)),
               ""};
}

}  // namespace broach::specializer::window_rows
