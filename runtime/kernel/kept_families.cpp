#include "runtime/kernel/kept_families.hpp"

#include <algorithm>
#include <utility>

namespace broach::runtime {

using specializer::own::OwnFamily;

std::shared_ptr<const OwnFamily> KeptFamilies::keep(
    const std::shared_ptr<const OwnFamily>& family) {
  const std::lock_guard lock(mutex_);
  const auto same = std::find_if(kept_.begin(), kept_.end(), [&](const auto& each) {
    return each == family || each->digest() == family->digest();
  });
  if (same != kept_.end()) return *same;
  kept_.push_back(family);
  return family;
}

KernelShapeState KeptFamilies::keep(const KernelShapeState& shape) {
  auto family = keep(shape.family);
  specializer::Shape same(*family);
  for (std::size_t i = 0; i < shape.shape.values().size(); ++i) same.set(i, shape.shape[i]);
  return {std::move(family), same};
}

}  // namespace broach::runtime
