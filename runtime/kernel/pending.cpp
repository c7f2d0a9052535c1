#include "runtime/kernel/pending.hpp"

#include <algorithm>

namespace broach::runtime {

bool PendingKernels::begins(const specializer::Shape& shape) {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const Row& row) { return row.shape == shape; };
  if (std::any_of(rows_.begin(), rows_.end(), same)) return false;
  rows_.push_back({shape, std::nullopt});
  return true;
}

void PendingKernels::ended(const specializer::Shape& shape, std::optional<Error> fault) {
  const std::lock_guard lock(mutex_);
  const auto row = std::find_if(rows_.begin(), rows_.end(),
                                [&](const Row& each) { return each.shape == shape; });
  if (row == rows_.end()) return;
  if (fault) {
    row->fault = std::move(fault);
  } else {
    rows_.erase(row);
  }
}

std::optional<Error> PendingKernels::take_fault(const specializer::Shape& shape) {
  const std::lock_guard lock(mutex_);
  const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& each) {
    return each.shape == shape && each.fault.has_value();
  });
  if (row == rows_.end()) return std::nullopt;
  std::optional<Error> fault = std::move(row->fault);
  rows_.erase(row);
  return fault;
}

}  // namespace broach::runtime
