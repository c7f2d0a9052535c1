#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "specializer/forge.hpp"
#include "specializer/target.hpp"

namespace broach::contract {

/// A set of compilers under a name.
///
/// Owns:    nothing; the forge outlives it.
struct Toolchain {
  std::string name;  ///< "system", "prefix"; empty for the only one.
  specializer::Forge* forge = nullptr;
};

/// Whether a compiler says that it compiles for a target. It may leave a target out that it was not
/// asked about: NVRTC states chips, not their `a` and `f` targets, and a C++ compiler nothing.
enum class States : std::uint8_t { kYes, kNo, kUnknown };

/// One of a toolchain's compilers, and what it states that it can compile for.
struct CompilerReport {
  std::string toolchain;                                      ///< The toolchain's name.
  specializer::Vendor vendor = specializer::Vendor::kNvidia;  ///< Whose targets it compiles for.
  std::string words;                    ///< As loaded; empty when there is none.
  std::string missing;                  ///< Why there is none.
  std::vector<std::string> stated;      ///< In its own words; empty when it does not say.
  std::vector<std::string> no_target;   ///< Of these, what broach has no target for, and why.
  std::vector<std::string> not_stated;  ///< Targets of broach that it does not compile for.

  States states(const specializer::Target& target) const;
};

/// Opens a toolchain's compiler for a vendor's targets and asks it.
CompilerReport examine(const Toolchain& toolchain, specializer::Vendor vendor);

/// "NVIDIA", "AMD", "host"
std::string_view name_of(specializer::Vendor vendor);

}  // namespace broach::contract
