#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broach/result.hpp"
#include "specializer/own/header_pack.hpp"
#include "specializer/sources.hpp"
#include "specializer/target.hpp"

namespace broach::specializer::own {

/// A pack as a family declares it.
struct DeclaredPack {
  std::shared_ptr<const HeaderPack> pack;
  std::optional<Vendor> only;  ///< The vendor whose plans see it; empty: every vendor's.
};

/// The files that an engine's family may include: its declared sources, its header packs, and the
/// library's own headers ("broach/kernel.cuh" and what that needs).
///
/// An include in quotes is looked for beside the file that has it, then by its full name among the
/// sources, then in the packs in their order; one in angle brackets in the packs, then among the
/// sources. Within a pack, an include in quotes is looked for beside the file and from the pack's
/// top, then as one in angle brackets. The library's headers come last, after its stand-ins for
/// C++'s standard headers (standard_headers.hpp).
///
/// A file is handed over with each include respelt as `<virtual name>`: that means the same file
/// to every compiler, those that know virtual files by their spelling alone included. An include
/// that is left out is respelt as an `#error` that names it, so that a compiler that reaches it
/// stops and never looks for a file of its own.
///
/// Threads: any.
/// Owns:    the sources; shares the packs.
class FamilyFiles final : public SourceFiles {
 public:
  /// `family` is for messages. Sources have names as virtual_name gives them.
  FamilyFiles(std::string family, std::vector<SourceFile> sources, std::vector<DeclaredPack> packs);

  /// Errors:  kInvalidArgument naming family, file, line, include and the way out, where a source
  ///          of the family includes what no declared file is, or a file that a macro names;
  ///          those of the packs.
  ///
  /// Left out: what no declared tree holds, where a pack's file includes it, or where a pack that
  /// is declared for another vendor may hold it.
  Result<std::vector<FileRef>> link(std::string_view name, std::string& bytes,
                                    Vendor vendor) const override;
  Result<LinkedFile> file(const FileRef& ref, Vendor vendor) const override;
  Result<std::optional<FileRef>> named(const FileRef& from, const Include& include,
                                       Vendor vendor) const override;
  std::string words_of(std::uint32_t tree) const override;

 private:
  struct Source {
    std::string bytes;
    std::vector<IncludeDirective> includes;
  };
  struct Linked {
    std::string respelt;     ///< Empty where nothing had to be.
    std::string_view bytes;  ///< `respelt`, or the file's own.
    std::vector<FileRef> includes;
    std::vector<std::string> computed;
  };
  using Where = std::pair<std::uint32_t, std::string>;  ///< Tree and name of an including file.

  Result<Linked> linked(const Where& from, std::string_view bytes,
                        const std::vector<IncludeDirective>& includes, Vendor vendor) const;
  Result<std::optional<FileRef>> resolve(const Where& from, const IncludeDirective& directive,
                                         Vendor vendor) const;
  Result<std::optional<FileRef>> in_pack(std::size_t pack, const std::optional<std::string>& name,
                                         Vendor vendor) const;
  Result<std::optional<FileRef>> in_packs(std::size_t first, const std::optional<std::string>& name,
                                          Vendor vendor) const;
  std::optional<FileRef> in_sources(const std::optional<std::string>& name) const;
  std::optional<FileRef> in_library(const std::optional<std::string>& name) const;
  Error unresolved(const Where& from, const IncludeDirective& directive) const;

  std::string family_;
  std::map<std::string, Source, std::less<>> sources_;
  std::vector<DeclaredPack> packs_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<Vendor, FileRef>, std::unique_ptr<Linked>> linked_;
};

}  // namespace broach::specializer::own
