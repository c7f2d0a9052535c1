#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "specializer/compilers.hpp"

namespace broach::specializer {

/// Files that exist and might serve, best first, and every path that was looked at.
struct Candidates {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> tried;
  std::vector<std::string> refused;  ///< Why files that exist are not used, a line each.
};

/// Whether a search stops at the first file that exists.
enum class Extent : std::uint8_t { kFirst, kAll };

/// Looks for a compiler's file. No library is opened. A file that the search comes upon is used
/// only where nobody but root, this user and the owner of broach's own library could have put it
/// there (docs/trust.md); one that an option names is used as it is.
///
/// NVRTC and hiprtc: the option alone where it is set; else the directories of this process's
/// loader (LD_LIBRARY_PATH, its defaults), those of /etc/ld.so.conf, then the toolkits' usual
/// places; a directory's newest version first. hiprtc with a prefix: that prefix alone.
/// Host compiler: the option alone where it is set; else c++, g++, clang++ on `search_path`.
Candidates find_compiler(CompilerKind kind, const CompilersOptions& options, Extent extent);

/// Looks for broach-rtc: the option alone where it is set; else beside the library that holds this
/// code, in `../libexec/broach` and `../bin` of its directory, in the configured `libexec/broach`,
/// in the same places of the program's directory, and in `../libexec/broach` of the directories of
/// `search_path`. Wherever it is found, it is held to the rule above.
Candidates find_worker(const CompilersOptions& options);

/// How a program is started with the loader and libraries of a prefix: the words before the
/// program's own path.
///
/// Errors:  kCompilerMissing with the loaders tried, or why the one that is there is not used.
Result<std::vector<std::string>> prefix_command(const std::filesystem::path& prefix);

}  // namespace broach::specializer
