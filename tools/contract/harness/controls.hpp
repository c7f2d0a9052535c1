#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tools/contract/harness/bench.hpp"
#include "tools/contract/harness/gates.hpp"

namespace broach::contract {

class Case;

/// A fault planted in a family's own source, and the gate that has to see it.
struct Control {
  std::string_view name;   ///< specializer::Variant::control.
  std::string kind;        ///< "tile64 prefill": what its kernel is.
  std::string_view words;  ///< What the faulty kernel does.
  Gate gate = Gate::kShapes;
  std::string_view why;  ///< Why that gate separates it.
  std::shared_ptr<const Case>
      tried;  ///< Small, and one that the fault can reach; its kernel has it.
};

/// "window_early (tile64 prefill)"
std::string name_of(const Control& control);

/// What became of one control.
struct ControlReport {
  Control control;
  bool red = false;
  std::string words;  ///< What the gate said of it, or why it could not be built.
};

/// Builds the faulty kernel and runs the gate that has to turn red.
ControlReport try_control(const Control& control, const Bench& bench, std::uint32_t threads);

}  // namespace broach::contract
