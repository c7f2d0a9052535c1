#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "kernel_src/embedded.hpp"
#include "specializer/include_scan.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

/// The includes of a source, in order of appearance, those within comments and raw strings too.
std::vector<Include> includes_of(std::string_view source);

/// A file that an include was resolved to.
struct FileRef {
  std::string name;        ///< Virtual: what the compiler knows it by.
  std::uint32_t tree = 0;  ///< Which of the trees of a SourceFiles it lies in.

  friend auto operator<=>(const FileRef&, const FileRef&) = default;
};

/// A file as it is handed to a compiler, and what it includes.
struct LinkedFile {
  std::string_view bytes;
  std::vector<FileRef> includes;
  std::vector<std::string> computed{};  ///< What stands behind each include by a macro.
};

/// The files that a family's includes resolve among. No compiler is told where others lie.
///
/// Threads: any.
/// Owns:    the bytes of its files.
class SourceFiles {
 public:
  virtual ~SourceFiles() = default;

  /// Resolves the includes of a rendered main source. It may respell them in place, so that every
  /// compiler understands the same file by them; lines keep their numbers.
  ///
  /// Errors:  naming the file, the include, and the way out.
  virtual Result<std::vector<FileRef>> link(std::string_view name, std::string& bytes,
                                            Vendor vendor) const = 0;

  /// A file that an include was resolved to, its own includes resolved.
  ///
  /// Errors:  as `link`.
  virtual Result<LinkedFile> file(const FileRef& ref, Vendor vendor) const = 0;

  /// What an include means that a macro of some reached file can come to; nothing by itself.
  ///
  /// Errors:  as `link`.
  virtual Result<std::optional<FileRef>> named(const FileRef& from, const Include& include,
                                               Vendor vendor) const;

  /// A tree as messages name it.
  virtual std::string words_of(std::uint32_t tree) const = 0;
};

/// The files that were compiled into the library. Includes of them are by their full name, in
/// quotes.
///
/// Files under `host/` belong to the host target alone and are left out of other vendors' plans,
/// so that a change of the host shim leaves GPU binaries alone.
class EmbeddedSources final : public SourceFiles {
 public:
  explicit EmbeddedSources(std::span<const EmbeddedFile> files) : files_(files) {}

  /// Errors:  kInternal naming the file that includes and what it includes, where that is no
  ///          embedded file by its full name in quotes.
  Result<std::vector<FileRef>> link(std::string_view name, std::string& bytes,
                                    Vendor vendor) const override;
  Result<LinkedFile> file(const FileRef& ref, Vendor vendor) const override;
  std::string words_of(std::uint32_t tree) const override;

  /// The bytes of a file, or null.
  const EmbeddedFile* find(std::string_view name) const noexcept;

 private:
  Result<std::vector<FileRef>> includes(std::string_view name, std::string_view bytes,
                                        Vendor vendor) const;

  std::span<const EmbeddedFile> files_;
};

/// Every device source of the library.
const EmbeddedSources& embedded_sources() noexcept;

/// A main source and every file it includes, however indirectly: the main source first, then the
/// others by name. An include by a macro counts as each that the reached files' definitions of the
/// macro can make of it.
///
/// Errors:  those of `files`; kInvalidArgument where files of two trees would have one name;
///          kLimitExceeded past kMaxPlanFiles or kMaxPlanBytes.
Result<std::vector<SourceFile>> close_over_includes(std::string_view main_name,
                                                    std::string main_source, Vendor vendor,
                                                    const SourceFiles& files);

/// What a compile request holds with room for its other fields.
inline constexpr std::size_t kMaxPlanFiles = 4000;
inline constexpr std::size_t kMaxPlanBytes = std::size_t{64} << 20;

}  // namespace broach::specializer
