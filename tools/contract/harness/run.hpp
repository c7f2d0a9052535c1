#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "broach/runtime.hpp"
#include "runtime/device.hpp"
#include "specializer/shape.hpp"
#include "tools/contract/harness/range_report.hpp"

namespace broach::contract {

/// How a case is run.
struct RunOptions {
  std::int32_t timed_launches = 0;  ///< After the checked one; 0: no timing.
  std::uint32_t threads = 0;        ///< For the checker; 0: one a core.
};

/// What one checked (and perhaps timed) run found.
///
/// Units:   microseconds a launch, the wait for its end included; `spread_us` is the distance
///          between the first and the third quartile; both 0 without timing.
struct RunReport {
  RangeReport range;
  double median_us = 0;
  double spread_us = 0;
  std::int32_t timed_launches = 0;
  std::string device;
  std::string target;
  std::vector<std::uint16_t> out;  ///< As the problem's strides lay it out.
};

/// A problem that a user asks for: a family's shape and what of its sizes they named. A family
/// makes up the rest.
struct RunRequest {
  specializer::Shape shape;
  bool has_shape = false;  ///< They named a field of it; else the family has an example.
  std::optional<std::int32_t> rows;
  std::optional<std::int32_t> kv_heads;
  std::optional<std::int32_t> position;  ///< Of the last row.
  std::optional<std::int32_t> p0;        ///< Position of the first row.
  std::string hi;                        ///< "first:last": rows that see each other; or empty.
};

/// One operator of a family on a made problem.
///
/// Threads: one.
class Runner {
 public:
  virtual ~Runner() = default;

  virtual std::string name() const = 0;
  virtual const specializer::Shape& shape() const = 0;

  /// Makes the operator ready, as the first request of an engine does.
  ///
  /// Errors:  the runtime's.
  virtual Result<void> load(Runtime& runtime) const = 0;

  /// Launches it through the public interface and judges every output.
  ///
  /// Errors:  the runtime's; kInternal when a guard behind the outputs was overwritten.
  virtual Result<RunReport> run(Runtime& runtime, runtime::Device& device,
                                const RunOptions& options) const = 0;
};

}  // namespace broach::contract
