#include "tools/contract/window_rows/limit_kernels.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "specializer/window_rows/shape.hpp"
#include "tools/contract/window_rows/cases.hpp"

namespace broach::contract::window_rows {
namespace {

constexpr std::uint32_t kHeadDims[] = {64, 80, 96, 112, 128, 192, 256, 512};
constexpr std::uint32_t kWidestHeadDim = 256;  // Where registers are shortest.
constexpr std::uint32_t kCheapHeadDim = 64;    // Where compilers are fastest.

bool is_chunk256(const WindowRowsShape& shape, Switch /*generic*/) {
  return shape.arith == Arith::kChunk256;
}

bool is_generic_chunk256(const WindowRowsShape& shape, Switch generic) {
  return is_chunk256(shape, generic) && generic == Switch::kOn;
}

constexpr std::string_view kRunTimeStrides =
    "a generic kernel holds the strides and the layout of k and v, 64 bits each, beside the "
    "products "
    "of a run of keys; some compilers keep up to 40 of them in scratch";

constexpr std::string_view kScratch = "vector registers in scratch";

constexpr std::string_view kPart = "broach_window_rows_chunk256_partial";

// 65,536 registers over three consumer warpgroups and a producer's are 160 a thread, over two 240.
constexpr std::string_view kSharedFile =
    "outputs, scores, P and a chunk's product take all but 16 of the registers that a consumer's "
    "thread can have; up to a dozen values beside them are stored and loaded";

bool is_short_of_registers(const WindowRowsShape& shape, Switch generic) {
  const bool is_short = (shape.head_dim == 128 && shape.p32 == Switch::kOff) ||
                        (shape.head_dim == 256 && shape.p32 == Switch::kOn);
  return is_tile64(shape.arith) && shape.form == Form::kPrefill && is_short &&
         generic == Switch::kOff;
}

// A finding, and the kernels that may show it.
struct Known {
  Finding finding;
  bool (*shows)(const WindowRowsShape& shape, Switch generic);
};

constexpr Known kKnown[] = {
    {{"broach_window_rows_tile64_prefill",
      "sm_90a",
      "up to 72 bytes in local memory",
      kSharedFile,
      {72, 0, 0}},
     is_short_of_registers},
    {{kPart, "gfx906", kScratch, kRunTimeStrides, {160, 40, 160}}, is_generic_chunk256},
    {{kPart, "gfx103", kScratch, kRunTimeStrides, {160, 40, 0}}, is_generic_chunk256},
    {{kPart, "gfx11", kScratch, kRunTimeStrides, {160, 40, 0}}, is_generic_chunk256},
    {{kPart, "gfx8", kScalars, kScalarsInLanes, scalars(160)}, is_chunk256},
    {{kPart, "gfx9", kScalars, kScalarsInLanes, scalars(160)}, is_chunk256},
    {{kPart, "gfx10", kScalars, kScalarsInLanes, scalars(48)}, is_chunk256},
};

// The Gemma-4-like shape at a head_dim.
WindowRowsShape shape_of(const ArithForm& served, std::uint32_t head_dim) {
  WindowRowsShape shape;
  shape.form = served.form;
  shape.arith = served.arith;
  shape.head_dim = head_dim;
  shape.gqa_ratio = 2;
  shape.window = 1024;
  shape.kv_layout = {KvLayoutKind::kRing, 1536};
  return shape;
}

// Specialised and generic kernels, and p32, at the widest head_dim.
std::vector<LimitKernel> widest() {
  std::vector<LimitKernel> kernels;
  for (const ArithForm& served : kArithForms) {
    WindowRowsShape shape = shape_of(served, kWidestHeadDim);
    kernels.push_back(limit_kernel(shape));
    kernels.push_back(limit_kernel(shape, {"", Switch::kOn}));
    if (served.arith == Arith::kChunk256) continue;
    shape.p32 = Switch::kOn;
    kernels.push_back(limit_kernel(shape));
  }
  return kernels;
}

// The same at every head_dim; both types, and more query heads.
std::vector<LimitKernel> every() {
  std::vector<LimitKernel> kernels;
  for (const ArithForm& served : kArithForms) {
    for (const std::uint32_t head_dim : kHeadDims) {
      WindowRowsShape shape = shape_of(served, head_dim);
      for (const Switch p32 : {Switch::kOff, Switch::kOn}) {
        if (p32 == Switch::kOn && served.arith == Arith::kChunk256) continue;
        shape.p32 = p32;
        kernels.push_back(limit_kernel(shape));
        kernels.push_back(limit_kernel(shape, {"", Switch::kOn}));
      }
      shape.p32 = Switch::kOff;
      shape.dtype = Dtype::kF16;
      shape.gqa_ratio = 16;
      kernels.push_back(limit_kernel(shape));
    }
  }
  return kernels;
}

}  // namespace

LimitKernel limit_kernel(const WindowRowsShape& shape, const specializer::Variant& variant) {
  LimitKernel kernel;
  kernel.kind =
      fmt::format("{} {}", specializer::name_of(shape.form), specializer::name_of(shape.arith));
  kernel.plan = [shape, variant](
                    const specializer::Target& target) -> Result<std::optional<specializer::Plan>> {
    const auto served = specializer::serve(shape, target);
    if (!served) return std::optional<specializer::Plan>();
    auto plan = specializer::plan(*served, variant);
    if (!plan) return plan.error();
    return std::optional(std::move(*plan));
  };
  for (const Known& known : kKnown) {
    if (known.shows(shape, variant.generic)) kernel.findings.push_back(known.finding);
  }
  return kernel;
}

std::vector<LimitKernel> limit_kernels(LimitDepth depth) {
  switch (depth) {
    case LimitDepth::kOneOfEach:
      return {limit_kernel(shape_of({Arith::kChunk256, Form::kDecode}, kCheapHeadDim))};
    case LimitDepth::kWidest:
      return widest();
    case LimitDepth::kEvery:
      break;
  }
  return every();
}

std::vector<Finding> known_findings() {
  std::vector<Finding> findings;
  for (const Known& known : kKnown) findings.push_back(known.finding);
  return findings;
}

}  // namespace broach::contract::window_rows
