#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tools/contract/harness/controls.hpp"
#include "tools/contract/harness/gates.hpp"
#include "tools/contract/window_rows/cases.hpp"

namespace broach::contract::window_rows {

/// What a control's case needs, for the fault to be reachable at all.
enum class Needs : std::uint8_t { kWindow, kSinks, kPages, kHi, kP32, kStale };

/// A fault planted in the family's own source, and the gate that has to see it.
///
/// `name` goes into specializer::Variant::control; no public interface can ask for it.
struct PlantedFault {
  std::string_view name;
  std::string_view words;  ///< What the faulty kernel does.
  Arith arith;
  Form form;
  Needs needs;
  Gate gate;
  std::string_view why;  ///< Why that gate separates it.
};

/// Every planted fault of every arithmetic and form.
std::span<const PlantedFault> planted_faults();

/// The case that a fault is tried on: small, with a window over several chunks and tiles, a ring
/// that has wrapped (or sinks, or pages), and NaN in every cell that no row sees.
CaseSpec control_case(const PlantedFault& fault);

/// The same for the harness.
Control control_of(const PlantedFault& fault);

}  // namespace broach::contract::window_rows
