#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/target.hpp"

namespace broach::specializer {

/// Says whether each field of a shape is in range and the fields agree, on whatever target.
///
/// Errors:  kInvalidArgument with the field, its value, and what would work.
Result<void> check_ranges(const WindowRowsShape& shape);

/// Says whether the family can serve a shape on a target: the ranges, and that a kernel exists.
///
/// Errors:  kInvalidArgument or kUnsupported with the field, its value, and what would work.
Result<void> check(const WindowRowsShape& shape, const Target& target);

/// The shape with every default replaced by what the target uses.
WindowRowsShape resolved(const WindowRowsShape& shape, const Target& target);

/// One parameter of a shape by name, as text: ("kv_layout", "ring(1536)").
struct ShapeParameter {
  std::string name;
  std::string value;
};

/// The words a shape is written with: "bf16", "decode", "chunk256", "ring".
std::string_view name_of(Dtype dtype) noexcept;
std::string_view name_of(Form form) noexcept;
std::string_view name_of(Arith arith) noexcept;
std::string_view name_of(KvLayoutKind kind) noexcept;

/// Every parameter of a shape, in the order of the shape table.
std::vector<ShapeParameter> parameters(const WindowRowsShape& shape);

/// Canonical JSON: keys sorted, no spaces, `"family"` included.
std::string to_json(const WindowRowsShape& shape);

/// The family and `name=value` words that `parse_window_rows` reads, as a command line has them.
std::string to_words(const WindowRowsShape& shape);

/// Reads `name=value` words, after an optional first word "window_rows"; fields that are not named
/// keep their defaults.
///
/// Errors:  kInvalidArgument naming the word and the values that would work.
Result<WindowRowsShape> parse_window_rows(const std::vector<std::string>& words);

/// Reads the canonical JSON, or an object of the same fields in any order.
Result<WindowRowsShape> window_rows_from_json(std::string_view json);

}  // namespace broach::specializer
