#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "specializer/shape.hpp"
#include "tools/contract/contract.hpp"

namespace broach::contract {
namespace {

constexpr std::uint32_t kHeadDims[] = {64, 80, 96, 112, 128, 192, 256, 512};

// What gate 5 compiles in a quick sweep: the head_dim whose registers are shortest, for one chip of
// each kind.
constexpr std::uint32_t kQuickHeadDim = 256;
constexpr std::string_view kQuickTargets[] = {"sm_80",  "sm_90a",  "sm_120a",       "gfx90a",
                                              "gfx942", "gfx1100", "host-x86-64-v3"};

// One row an arithmetic and form that the family has.
struct Served {
  Arith arith;
  Form form;
};
constexpr Served kServed[] = {
    {Arith::kChunk256, Form::kDecode},
    {Arith::kTile64, Form::kDecode},
    {Arith::kTile64, Form::kPrompt},
    {Arith::kMma32, Form::kPrompt},
};

std::vector<DecodeCase> cases_of(const Served& served, CaseSize size) {
  const bool prompt = served.form == Form::kPrompt;
  std::vector<DecodeCase> cases =
      prompt ? ragged_prompts(served.arith) : ragged_decodes(served.arith);
  std::vector<DecodeCase> more =
      prompt ? served_prompts(size, served.arith) : served_decodes(size, served.arith);
  cases.insert(cases.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  return cases;
}

// Specialised and generic kernels of the Gemma-4-like shape at each head_dim; in a whole sweep both
// types, more query heads and p32 in all of them.
void add_limits(const Served& served, Sweep sweep, std::vector<LimitKernel>& kernels) {
  for (const std::uint32_t head_dim : kHeadDims) {
    if (sweep == Sweep::kQuick && head_dim != kQuickHeadDim) continue;
    WindowRowsShape shape;
    shape.form = served.form;
    shape.arith = served.arith;
    shape.head_dim = head_dim;
    shape.gqa_ratio = 2;
    shape.window = 1024;
    shape.kv_layout = {KvLayoutKind::kRing, 1536};
    kernels.push_back({shape, {}});
    kernels.push_back({shape, {"", Switch::kOn}});
    if (served.arith != Arith::kChunk256) {
      shape.p32 = Switch::kOn;
      kernels.push_back({shape, {}});
      if (sweep == Sweep::kWhole) kernels.push_back({shape, {"", Switch::kOn}});
      shape.p32 = Switch::kOff;
    }
    if (sweep == Sweep::kQuick) continue;
    shape.dtype = Dtype::kF16;
    shape.gqa_ratio = 16;
    kernels.push_back({shape, {}});
  }
}

}  // namespace

ContractRequest contract_of(const specializer::Target& target, Sweep sweep) {
  ContractRequest request;
  const bool host = target.vendor == specializer::Vendor::kHost;
  for (const Served& served : kServed) {
    for (DecodeCase& one : cases_of(served, host ? CaseSize::kCut : CaseSize::kFull)) {
      if (sweep == Sweep::kQuick && one.sweep == Sweep::kWhole) continue;
      if (specializer::check(one.recipe.shape, target)) request.cases.push_back(std::move(one));
    }
    add_limits(served, sweep, request.limits.kernels);
  }
  for (const Control& control : controls()) {
    if (specializer::check(control_case(control).recipe.shape, target)) {
      request.controls.push_back(control);
    }
  }
  for (const std::string_view name : specializer::known_targets()) {
    const bool quick = std::find(std::begin(kQuickTargets), std::end(kQuickTargets), name) !=
                       std::end(kQuickTargets);
    if (sweep == Sweep::kWhole || quick) request.limits.targets.emplace_back(name);
  }
  return request;
}

}  // namespace broach::contract
