#pragma once

#include "broach/result.hpp"
#include "broach/runtime.hpp"
#include "runtime/device.hpp"
#include "tools/contract/harness/run.hpp"
#include "tools/contract/window_rows/cases.hpp"
#include "tools/contract/window_rows/prefill.hpp"
#include "tools/contract/window_rows/range.hpp"

namespace broach::contract::window_rows {

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
