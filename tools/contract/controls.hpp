#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/contract/gates.hpp"

namespace broach::contract {

/// A fault planted in a family's own source, and the gate that has to see it.
///
/// `name` goes into specializer::Variant::control; no public interface can ask for it.
struct Control {
  std::string_view name;
  std::string_view words;  ///< What the faulty kernel does.
  Arith arith;
  Gate gate;
  std::string_view why;  ///< Why that gate separates it.
};

/// Every planted fault of every arithmetic.
std::span<const Control> controls();

/// What became of one control.
struct ControlReport {
  const Control* control = nullptr;
  bool red = false;
  std::string words;  ///< What the gate said of it, or why it could not be built.
};

/// The case that controls are tried on: small, with a window over several chunks, a ring that has
/// wrapped, a sink where the arithmetic's form has one, and NaN in every unseen cell.
DecodeCase control_case(const Control& control);

/// Builds the faulty kernel and runs the gate that has to turn red.
ControlReport try_control(const Control& control, const Bench& bench, std::string_view digest,
                          std::uint32_t threads);

}  // namespace broach::contract
