#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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
  std::vector<std::uint16_t> out;  ///< As the problem has them, where a family hands them on.
};

/// Times launches that are waited for, one by one, into a report: on the host that is all there is,
/// on a chip it is the latency that an engine sees. Benches time streams of launches.
///
/// Errors:  the launch's and the device's.
Result<void> time_launches(RunReport& report, runtime::Device& device, std::int32_t launches,
                           const std::function<Result<void>()>& launch);

/// Refuses a size that no problem can have.
///
/// Errors:  kInvalidArgument naming the option, its value and its bounds.
Result<void> check_between(std::string_view option, std::int64_t value, std::int64_t least,
                           std::int64_t most);

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
