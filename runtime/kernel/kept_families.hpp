#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/kernel/kernel_shape.hpp"

namespace broach::runtime {

/// The families of engines that a runtime has served: operators refer to them, so they stay.
///
/// Threads: any.
/// Owns:    a share of each family.
class KeptFamilies {
 public:
  /// The family that stands for it and all with the same contents, kept from now on.
  std::shared_ptr<const specializer::own::OwnFamily> keep(
      const std::shared_ptr<const specializer::own::OwnFamily>& family);

  /// The shape as one of the family that stands for its own.
  KernelShapeState keep(const KernelShapeState& shape);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const specializer::own::OwnFamily>> kept_;
};

}  // namespace broach::runtime
