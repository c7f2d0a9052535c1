// Every window_rows kernel through NVRTC for every chip with mma.sync. What a binary needs to
// launch is held against records by the contract's gate 5; this says that there is one.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "specializer/limits.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;

struct Kernel {
  Form form;
  Arith arith;
};
constexpr Kernel kKernels[] = {
    {Form::kDecode, Arith::kChunk256},   {Form::kDecode, Arith::kTile64},
    {Form::kPrefill, Arith::kTile64},    {Form::kDecode, Arith::kTile64Ex2},
    {Form::kPrefill, Arith::kTile64Ex2}, {Form::kPrefill, Arith::kMma32}};

WindowRowsShape shape_of(const Kernel& kernel, std::uint32_t head_dim) {
  WindowRowsShape shape;
  shape.form = kernel.form;
  shape.arith = kernel.arith;
  shape.head_dim = head_dim;
  shape.gqa_ratio = 2;
  shape.window = 1024;
  shape.kv_layout = {KvLayoutKind::kRing, 1536};
  return shape;
}

std::vector<Target> chips_with_steps() {
  std::vector<Target> chips;
  for (const std::string_view name : known_targets()) {
    auto target = parse_target(name);
    REQUIRE(target);
    // sm_75 alone has no such step: chunk256 is what it runs.
    if (target->vendor == Vendor::kNvidia && target->name != "sm_75") {
      chips.push_back(*std::move(target));
    }
  }
  return chips;
}

// tile64_ex2 exists where the exponential was measured over every input.
bool runs_on(const Kernel& kernel, const Target& chip) {
  return kernel.arith != Arith::kTile64Ex2 || chip.name == "sm_90" || chip.name == "sm_90a";
}

/// The limits of a compiled shape: one an entry.
std::vector<LaunchLimits> compiled(Compilers& compilers, const WindowRowsShape& shape,
                                   const Target& target, const Variant& variant = {}) {
  const auto planned = plan(shape, target, variant);
  INFO((planned ? planned->shape_json : planned.error().message) << " for " << target.name);
  REQUIRE(planned);
  const auto output = compilers.compile(*planned);
  INFO((output ? "" : output.error().message + "\n" + output.error().detail));
  REQUIRE(output);
  auto limits = read_limits(*planned, output->binary, output->log);
  REQUIRE(limits);
  CHECK(limits->size() == planned->entries.size());
  return *std::move(limits);
}

std::string no_nvrtc(Compilers& compilers) {
  const auto identity = compilers.identity(nvidia("sm_90a"));
  return identity ? "" : identity.error().message;
}

}  // namespace

TEST_CASE("each NVIDIA chip from sm_80 on has a MMA step, so no arithmetic is refused for it",
          "[specializer][window_rows]") {
  const std::vector<Target> chips = chips_with_steps();
  CHECK(chips.size() >= 10);
  for (const Target& chip : chips) {
    INFO(chip.name);
    // sm_80 to sm_89 take two k8 steps, later chips one k16 step.
    const bool two_k8 = chip.name.starts_with("sm_8");
    CHECK(chip.mma_step == (two_k8 ? MmaStep::kTwoK8 : MmaStep::kOneK16));
    for (const Kernel& kernel : kKernels) {
      CHECK(plan(shape_of(kernel, 64), chip).ok() == runs_on(kernel, chip));
    }
  }
  for (const Kernel& kernel : kKernels) {
    const bool scalar = kernel.arith == Arith::kChunk256;
    CHECK(plan(shape_of(kernel, 64), *parse_target("sm_75")).ok() == scalar);
  }
}

TEST_CASE("each NVIDIA chip gets a kernel, and each arithmetic and form comes up",
          "[specializer][window_rows][compile]") {
  Compilers compilers(compilers_options());
  if (const std::string why = no_nvrtc(compilers); !why.empty()) BROACH_SKIP(why);
  // One kernel a chip in turn; the slow case has all of them for each.
  std::size_t turn = 0;
  for (const Target& chip : chips_with_steps()) {
    while (!runs_on(kKernels[turn % std::size(kKernels)], chip)) ++turn;
    compiled(compilers, shape_of(kKernels[turn++ % std::size(kKernels)], 64), chip);
  }
  CHECK(turn >= 2 * std::size(kKernels));
}

TEST_CASE("every arithmetic and form compiles for every NVIDIA chip",
          "[specializer][window_rows][compile][slow]") {
  Compilers compilers(compilers_options());
  if (const std::string why = no_nvrtc(compilers); !why.empty()) BROACH_SKIP(why);
  for (const Target& chip : chips_with_steps()) {
    for (const Kernel& kernel : kKernels) {
      if (!runs_on(kernel, chip)) continue;
      for (const std::uint32_t head_dim : {64U, 256U}) {
        compiled(compilers, shape_of(kernel, head_dim), chip);
      }
      compiled(compilers, shape_of(kernel, 64), chip, {"", Switch::kOn});
    }
  }
}

TEST_CASE("mma32's prefill of 256 dims keeps its registers",
          "[specializer][window_rows][compile]") {
  Compilers compilers(compilers_options());
  if (const std::string why = no_nvrtc(compilers); !why.empty()) BROACH_SKIP(why);
  const auto target = parse_target("sm_90a");
  REQUIRE(target);
  // Pages take most: a warp has 128 registers of outputs, and both slices' scores beside them.
  WindowRowsShape shape = shape_of({Form::kPrefill, Arith::kMma32}, 256);
  shape.kv_layout = {KvLayoutKind::kPaged, 64};
  for (const LaunchLimits& limits : compiled(compilers, shape, *target)) {
    INFO(limits.function);
    REQUIRE(limits.spill_bytes);
    CHECK(*limits.spill_bytes == 0);
  }
}
