#include "tools/contract/window_rows/limits_scope.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "specializer/target.hpp"

namespace broach::contract {
namespace {

constexpr std::uint32_t kHeadDims[] = {64, 80, 96, 112, 128, 192, 256, 512};
constexpr std::uint32_t kWidestHeadDim = 256;  // Where registers are shortest.
constexpr std::uint32_t kCheapHeadDim = 64;    // Where compilers are fastest.

// Chips whose code or limits are another chip's no more than their name is: the plain and the
// family's targets, and those of the same generation and size, have their code.
constexpr std::string_view kDeepTargets[] = {
    "sm_80",   "sm_86",   "sm_87",   "sm_89",   "sm_90a",  "sm_100a", "sm_103a",       "sm_110a",
    "sm_120a", "sm_121a", "gfx906",  "gfx908",  "gfx90a",  "gfx942",  "gfx950",        "gfx1030",
    "gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201", "host-x86-64-v3"};

// One chip of each kind.
constexpr std::string_view kQuickTargets[] = {"sm_80",  "sm_90a",  "sm_120a",       "gfx90a",
                                              "gfx942", "gfx1100", "host-x86-64-v3"};

template <std::size_t kCount>
bool holds(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

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

// One kernel of each arithmetic and form.
std::vector<LimitKernel> one_of_each() {
  std::vector<LimitKernel> kernels;
  for (const ArithForm& served : kArithForms)
    kernels.push_back({shape_of(served, kCheapHeadDim), {}});
  return kernels;
}

// Specialised and generic kernels, and p32, at the widest head_dim.
std::vector<LimitKernel> widest() {
  std::vector<LimitKernel> kernels;
  for (const ArithForm& served : kArithForms) {
    WindowRowsShape shape = shape_of(served, kWidestHeadDim);
    kernels.push_back({shape, {}});
    kernels.push_back({shape, {"", Switch::kOn}});
    if (served.arith == Arith::kChunk256) continue;
    shape.p32 = Switch::kOn;
    kernels.push_back({shape, {}});
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
        kernels.push_back({shape, {}});
        kernels.push_back({shape, {"", Switch::kOn}});
      }
      shape.p32 = Switch::kOff;
      shape.dtype = Dtype::kF16;
      shape.gqa_ratio = 16;
      kernels.push_back({shape, {}});
    }
  }
  return kernels;
}

}  // namespace

std::vector<LimitKernel> deepest_kernels(Sweep sweep) {
  return sweep == Sweep::kWhole ? every() : widest();
}

std::vector<LimitScope> limit_scopes(Sweep sweep) {
  std::vector<LimitScope> scopes;
  for (const std::string_view name : specializer::known_targets()) {
    const bool deep =
        sweep == Sweep::kWhole ? holds(kDeepTargets, name) : holds(kQuickTargets, name);
    const auto others = [&] { return sweep == Sweep::kWhole ? widest() : one_of_each(); };
    scopes.push_back({std::string(name), deep ? deepest_kernels(sweep) : others()});
  }
  return scopes;
}

}  // namespace broach::contract
