#pragma once

#include <memory>

#include "specializer/own/own_family.hpp"
#include "specializer/shape.hpp"

namespace broach::runtime {

/// What a KernelShape is: a shape, and the family that it refers to.
struct KernelShapeState {
  std::shared_ptr<const specializer::own::OwnFamily> family;
  specializer::Shape shape;
};

}  // namespace broach::runtime
