#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "broach/result.hpp"

namespace broach::specializer {

enum class FieldKind : std::uint8_t {
  kNumber,            ///< A whole number below 2^32.
  kChoice,            ///< One of some names.
  kChoiceWithNumber,  ///< The same, and some of them take a number: ring(1536).
};

enum class TakesNumber : std::uint8_t { kNo, kYes };

/// One value of a choice. Its position in the field's list is its number.
struct Choice {
  std::string_view name;
  TakesNumber takes_number = TakesNumber::kNo;
};

/// Another name that is read for a value, and never written.
struct Alias {
  std::string_view name;
  std::string_view stands_for;
};

/// Whether a family's generic kernel has a field compiled in or takes it at run time.
enum class InGeneric : std::uint8_t { kCompiled, kRunTime };

/// One parameter of a family's shapes.
///
/// Owns:    nothing: names and lists are the family's, and live as long as it.
struct Field {
  std::string_view name;
  FieldKind kind = FieldKind::kNumber;
  std::span<const Choice> choices = {};
  std::span<const Alias> aliases = {};
  std::uint64_t default_value = 0;  ///< As a Shape holds it.
  InGeneric in_generic = InGeneric::kCompiled;
};

/// A value of a choice with a number, as a Shape holds it.
constexpr std::uint64_t choice_value(std::uint32_t choice, std::uint32_t number) noexcept {
  return std::uint64_t{choice} << 32 | number;
}
constexpr std::uint32_t choice_of(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value >> 32);
}
constexpr std::uint32_t number_of(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value);
}

/// A value as text: "256", "bf16", "ring(1536)". "unknown" for a choice that the field lacks.
std::string value_text(const Field& field, std::uint64_t value);

/// Reads such text, or an alias of it.
///
/// Errors:  kInvalidArgument naming family, field and text, with what would work.
Result<std::uint64_t> read_value(std::string_view family, const Field& field,
                                 std::string_view text);

}  // namespace broach::specializer
