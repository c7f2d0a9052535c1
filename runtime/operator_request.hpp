#pragma once

#include <memory>

#include "broach/result.hpp"
#include "runtime/operator.hpp"
#include "runtime/runtime_state.hpp"

namespace broach::runtime {

/// Serves a shape that the look-up table does not have under this spelling: resolves it, and builds
/// it once for all the threads that ask.
///
/// Errors:  the family's; kNotWarmed; kCapturing when `stream` captures and the shape is not loaded
///          yet; the compiler's; kLimitExceeded.
Result<std::shared_ptr<const Operator>> first_request(Runtime::State& runtime,
                                                      const specializer::Shape& shape,
                                                      Stream stream, MakeLaunch make_launch);

/// As first_request under first use `wait` or `never`, whichever the runtime's is: without a
/// generic kernel in between, and with a compile unless it is `never`.
Result<std::shared_ptr<const Operator>> request_specialised(Runtime::State& runtime,
                                                            const specializer::Shape& shape,
                                                            Stream stream, MakeLaunch make_launch);

/// The operator of a shape: the same one for the same shape, without a lock once it is there.
///
/// `make_launch` is the one of the shape's operator.
///
/// Errors:  as first_request.
inline Result<std::shared_ptr<const Operator>> request(Runtime::State& runtime,
                                                       const specializer::Shape& shape,
                                                       Stream stream, MakeLaunch make_launch) {
  if (const auto* known = runtime.operators.find(shape)) return *known;
  return first_request(runtime, shape, stream, make_launch);
}

}  // namespace broach::runtime
