#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "specializer/compilers.hpp"
#include "specializer/family.hpp"
#include "specializer/own/description.hpp"
#include "specializer/own/family_files.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer::own {

/// Where a family's header packs lie.
struct Places {
  std::filesystem::path directory;  ///< Relative roots begin there; empty: there are none.
  CompilersOptions toolkits;        ///< Where toolkits are looked for.
};

/// A family that an engine described: a family file and the bytes of its sources.
///
/// Threads: any; it does not change.
/// Owns:    all its names, values and bytes.
class OwnFamily final : public Family {
 public:
  /// Takes a family file's text and the sources that it lists, by name.
  ///
  /// `origin` says in messages where they come from.
  ///
  /// Errors:  kInvalidArgument as read_description, or naming the source that is missing.
  static Result<std::shared_ptr<const OwnFamily>> make(std::string_view origin,
                                                       std::string_view text,
                                                       std::vector<SourceFile> sources,
                                                       const Places& places = {});

  /// The same of a text that was read before.
  static Result<std::shared_ptr<const OwnFamily>> make(std::string_view origin,
                                                       std::string_view text,
                                                       Description description,
                                                       std::vector<SourceFile> sources,
                                                       const Places& places);

  std::string_view name() const noexcept override { return description_.name; }
  std::span<const Field> fields() const noexcept override { return fields_; }
  std::string_view digest() const noexcept override { return digest_; }
  std::string_view origin() const noexcept override { return origin_; }
  bool has_generic() const noexcept override { return false; }
  Refusals refusals() const noexcept override { return description_.refuse; }
  Result<void> check_ranges(const Shape& shape) const override;
  Result<ServedShape> serve(const Shape& shape, const Target& target) const override;
  Result<Rendered> render(const ServedShape& shape, const Variant& variant) const override;

  const SourceFiles& files() const noexcept override { return *files_; }
  Result<std::vector<std::string>> options(const Target& target) const override {
    return compiler_options(target, description_.options_of(target.vendor));
  }

  const Description& description() const noexcept { return description_; }
  std::string_view text() const noexcept { return text_; }  ///< The family file's.
  const std::vector<SourceFile>& own_sources() const noexcept { return sources_; }

 private:
  OwnFamily() = default;
  void make_fields();

  Description description_;
  std::string text_;
  std::string origin_;
  std::string digest_;
  std::vector<SourceFile> sources_;
  std::deque<std::vector<Choice>> choices_;  ///< What fields point to.
  std::vector<Field> fields_;
  std::unique_ptr<const FamilyFiles> files_;
};

}  // namespace broach::specializer::own
