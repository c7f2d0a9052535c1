#include <iterator>
#include <utility>

#include "specializer/shape.hpp"
#include "tools/contract/harness/contract.hpp"
#include "tools/contract/window_rows/limits_scope.hpp"

namespace broach::contract {
namespace {

std::vector<DecodeCase> cases_of(const ArithForm& served, CaseSize size) {
  const bool prefill = served.form == Form::kPrefill;
  std::vector<DecodeCase> cases =
      prefill ? ragged_prefills(served.arith) : ragged_decodes(served.arith);
  std::vector<DecodeCase> more =
      prefill ? served_prefills(size, served.arith) : served_decodes(size, served.arith);
  cases.insert(cases.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  return cases;
}

}  // namespace

ContractRequest contract_of(const specializer::Target& target, Sweep sweep) {
  ContractRequest request;
  const bool host = target.vendor == specializer::Vendor::kHost;
  for (const ArithForm& served : kArithForms) {
    for (DecodeCase& one : cases_of(served, host ? CaseSize::kCut : CaseSize::kFull)) {
      if (sweep == Sweep::kQuick && one.sweep == Sweep::kWhole) continue;
      if (specializer::check(one.recipe.shape, target)) request.cases.push_back(std::move(one));
    }
  }
  for (const Control& control : controls()) {
    if (specializer::check(control_case(control).recipe.shape, target)) {
      request.controls.push_back(control);
    }
  }
  request.limits.scopes = limit_scopes(sweep);
  return request;
}

}  // namespace broach::contract
