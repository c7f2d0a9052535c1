#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/contract/window_rows/gates.hpp"

namespace broach::contract {

/// What a control's case needs, for the fault to be reachable at all.
enum class Needs : std::uint8_t { kWindow, kSinks, kPages, kHi, kP32, kStale };

/// A fault planted in a family's own source, and the gate that has to see it.
///
/// `name` goes into specializer::Variant::control; no public interface can ask for it.
struct Control {
  std::string_view name;
  std::string_view words;  ///< What the faulty kernel does.
  Arith arith;
  Form form;
  Needs needs;
  Gate gate;
  std::string_view why;  ///< Why that gate separates it.
};

/// Every planted fault of every arithmetic and form.
std::span<const Control> controls();

/// "window_early (tile64 prefill)"
std::string name_of(const Control& control);

/// What became of one control.
struct ControlReport {
  const Control* control = nullptr;
  bool red = false;
  std::string words;  ///< What the gate said of it, or why it could not be built.
};

/// The case that a control is tried on: small, with a window over several chunks and tiles, a ring
/// that has wrapped (or sinks, or pages), and NaN in every cell that no row sees.
DecodeCase control_case(const Control& control);

/// Builds the faulty kernel and runs the gate that has to turn red.
ControlReport try_control(const Control& control, const Bench& bench, std::uint32_t threads);

}  // namespace broach::contract
