#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "broach/runtime.hpp"
#include "runtime/device.hpp"
#include "tools/contract/window_rows/cases.hpp"
#include "tools/contract/window_rows/prefill.hpp"
#include "tools/contract/window_rows/range.hpp"

namespace broach::contract::window_rows {

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

/// Makes the operator of a shape ready, as the first request of an engine does.
///
/// Errors:  the runtime's.
Result<void> load_operator(Runtime& runtime, const WindowRowsShape& shape);

/// Runs a case on a device through the public interface and judges every output.
///
/// Outputs and workspace are poisoned before the launch, so that what is not written shows.
///
/// Errors:  make_problem's; the runtime's; kInternal when a guard behind the outputs or the
///          workspace was overwritten.
Result<RunReport> run_case(Runtime& runtime, runtime::Device& device, const CaseSpec& tried,
                           const RunOptions& options = {});

/// The same for a problem that is already made.
Result<RunReport> run_case(Runtime& runtime, runtime::Device& device, Problem problem,
                           const RunOptions& options = {});

}  // namespace broach::contract::window_rows
