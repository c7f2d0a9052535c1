#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/contract/window_rows/gates.hpp"

namespace broach::contract::window_rows {

/// The base run of a case in gate 3, and what is held against it bit for bit.
///
/// Owns:    its problem and outputs; input and report outlive it.
class ShapeTrial {
 public:
  ShapeTrial(const GateInput& input, GateReport& report) : input_(input), report_(report) {}

  /// Makes the numbers and runs them once; false after a failure, which is reported.
  bool begin();

  const GateInput& input() const noexcept { return input_; }
  GateReport& report() noexcept { return report_; }
  const Problem& problem() const noexcept { return problem_; }
  const std::vector<std::uint16_t>& out() const noexcept { return out_; }

  /// Rows of a batch that hold the base's bits whatever the batch is.
  void batch(const std::vector<std::int32_t>& rows, const std::string& name);

  /// The case's numbers elsewhere in memory, by this kernel or another.
  void placed(const Kernel& kernel, const Recipe& recipe, const std::string& name);

  /// Holds rows of `problem` against the base's rows `where`.
  void compare(const Result<std::vector<std::uint16_t>>& out, const Problem& problem,
               const std::vector<std::int32_t>& where, const std::string& name);

 private:
  const GateInput& input_;
  GateReport& report_;
  Problem problem_;
  std::vector<std::uint16_t> out_;
};

/// Rows that see no key behind their own position: they may stand alone.
std::vector<std::int32_t> own_rows(const Problem& problem);

/// Promises 3 and 8 of a prefill: cut in two, row by row, and by the decode form.
void check_prefill_promises(ShapeTrial& trial);

}  // namespace broach::contract::window_rows
