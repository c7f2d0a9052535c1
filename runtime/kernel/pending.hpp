#pragma once

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "broach/result.hpp"
#include "runtime/kernel/kernel_shape.hpp"
#include "specializer/shape.hpp"

namespace broach::runtime {

/// Kernels that are being loaded or compiled behind a caller's back, and why some could not be.
///
/// Threads: any.
class PendingKernels {
 public:
  /// True for the caller that is to begin it.
  bool begins(const specializer::Shape& shape);

  void ended(const specializer::Shape& shape, std::optional<Error> fault);

  /// Why it could not be made, once: it is forgotten then, so that the next caller begins again.
  std::optional<Error> take_fault(const specializer::Shape& shape);

 private:
  struct Row {
    specializer::Shape shape;
    std::optional<Error> fault;  ///< None: under way.
  };

  std::mutex mutex_;
  std::vector<Row> rows_;
};

}  // namespace broach::runtime
