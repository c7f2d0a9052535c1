#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/field.hpp"
#include "specializer/shape.hpp"
#include "specializer/target.hpp"

namespace broach::specializer {

class SourceFiles;

/// Faulty or generic variants of a kernel that the public interface cannot ask for.
struct Variant {
  std::string control;            ///< Name of a planted fault, or empty.
  Switch generic = Switch::kOff;  ///< The family's run-time fields as run-time values.
};

/// One function of a binary and how a block of it is launched. The grid is the operator's. Where
/// `block_threads` is 0 the binary or the launch says it.
struct KernelEntry {
  std::string function;
  std::uint32_t block_threads = 0;
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t block_rows = 0;  ///< Rows that a block works on; 0 where the grid counts others.
  std::uint32_t copy_rows = 0;   ///< Keys of a tensor copy; 0 where no tensor map is passed.
  /// C++ that names the function where its name in the binary is the compiler's to choose:
  /// "scale<4>". Empty: `function` is the binary's name.
  std::string expression = {};
};

/// What binaries of a family may not have: one that has it is no error of the compiler, but is not
/// launched.
struct Refusals {
  bool spills = false;        ///< Of registers.
  bool local_memory = false;  ///< A stack, or arrays that registers cannot hold.
};

/// A family's main source for one shape, and the functions it defines.
///
/// The source names each constant (`constexpr int kHeadDim = 256;`) and includes the family's
/// embedded header; the plan adds that header and everything it includes.
struct Rendered {
  std::string main_source;
  std::vector<KernelEntry> entries;
  std::string main_name = "main.cu";
};

/// A family of kernels: what its shapes are made of, which of them it serves where, and the source
/// of each. Everything else about a shape (text, JSON, hash, key, manifests, journal) follows from
/// its fields.
///
/// Threads: any; a family does not change.
/// Owns:    its name, fields and choices; it outlives every Shape of it.
class Family {
 public:
  virtual ~Family() = default;

  virtual std::string_view name() const noexcept = 0;

  /// At most kMaxFields.
  virtual std::span<const Field> fields() const noexcept = 0;

  /// Hex digits over all that a family of an engine consists of; empty for this version's own.
  virtual std::string_view digest() const noexcept { return {}; }

  /// Where it comes from, for messages.
  virtual std::string_view origin() const noexcept { return "this version's own"; }

  /// Whether it has a generic kernel, which can serve while a shape's own is compiled.
  virtual bool has_generic() const noexcept { return true; }

  /// What its binaries may not have.
  virtual Refusals refusals() const noexcept { return {}; }

  /// Says whether each field is in range and the fields agree, on whatever target.
  ///
  /// Errors:  kInvalidArgument with the field, its value, and what would work.
  virtual Result<void> check_ranges(const Shape& shape) const = 0;

  /// Replaces defaults by what a target uses, checks ranges, and that a kernel exists.
  ///
  /// Errors:  kInvalidArgument or kUnsupported with the field, its value, and what would work;
  /// reason
  ///          kNoKernel where the target has no kernel for it.
  virtual Result<ServedShape> serve(const Shape& shape, const Target& target) const = 0;

  /// A control that the kernel lacks, and a generic kernel that there is not, render the plain
  /// source: the plan refuses them by that.
  virtual Result<Rendered> render(const ServedShape& shape, const Variant& variant) const = 0;

  /// What a planted fault needs that a shape lacks, as the shape's text ("p32=on"), or nothing.
  /// Without it the fault is out of reach: the kernel would be the sound one under the fault's
  /// name.
  virtual std::string_view control_needs(std::string_view control, const ServedShape& shape,
                                         const Variant& variant) const;

  /// What its sources' includes resolve among: by itself the files that are embedded in the
  /// library.
  virtual const SourceFiles& files() const noexcept;

  /// The compiler's options for a target, in the order they are passed and hashed: by itself those
  /// of the library's own families.
  ///
  /// Errors:  kInvalidArgument or kUnsupported with the option, its value, and what would work.
  virtual Result<std::vector<std::string>> options(const Target& target) const;

  /// Members that a manifest's entry of this family may have beside those of every entry.
  virtual std::span<const std::string_view> manifest_members() const noexcept { return {}; }

  /// The shapes of a manifest's entry: by itself the one of its member `shape`, ranges checked.
  ///
  /// Errors:  kInvalidArgument with the member or field, its value, and what would work.
  virtual Result<std::vector<Shape>> manifest_shapes(const nlohmann::json& entry) const;

 protected:
  /// What `serve` ends in.
  static ServedShape served(Shape shape, const Target& target) {
    return {std::move(shape), target};
  }
};

/// Every family of this version.
std::span<const Family* const> families() noexcept;

/// A family by name, or null.
const Family* find_family(std::string_view name) noexcept;

/// A family by name.
///
/// Errors:  kInvalidArgument naming the families there are.
Result<const Family*> family_named(std::string_view name);

}  // namespace broach::specializer
