#include "specializer/compile/search.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "cache/trusted_path.hpp"
#include "specializer/compile/loader_directories.hpp"

namespace broach::specializer {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kNvrtcNames = {"libnvrtc.so.13", "libnvrtc.so.12",
                                                         "libnvrtc.so.11.2", "libnvrtc.so"};
constexpr std::array<std::string_view, 7> kHiprtcNames = {
    "libhiprtc.so.7",   "libhiprtc.so.6", "libamdhip64.so.7", "libamdhip64.so.6",
    "libamdhip64.so.5", "libhiprtc.so",   "libamdhip64.so"};
constexpr std::array<std::string_view, 3> kHostNames = {"c++", "g++", "clang++"};
constexpr std::array<std::string_view, 7> kPrefixDirectories = {"usr/lib/x86_64-linux-gnu",
                                                                "usr/lib/aarch64-linux-gnu",
                                                                "lib/x86_64-linux-gnu",
                                                                "lib/aarch64-linux-gnu",
                                                                "usr/lib64",
                                                                "usr/lib",
                                                                "opt/rocm/lib"};
constexpr std::array<std::string_view, 6> kPrefixLoaders = {
    "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "usr/lib64/ld-linux-x86-64.so.2",
    "lib64/ld-linux-x86-64.so.2",
    "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "usr/lib/ld-linux-aarch64.so.1",
    "lib/ld-linux-aarch64.so.1"};

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

fs::path own_directory() {
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&find_worker), &info) == 0) return {};
  std::error_code error;
  const fs::path real = fs::canonical(info.dli_fname, error);
  return error ? fs::path() : real.parent_path();
}

// The owner of the file that holds this code: what is theirs runs here anyway.
std::optional<uid_t> own_files_owner() {
  Dl_info info;
  struct stat status {};
  if (::dladdr(reinterpret_cast<const void*>(&find_worker), &info) == 0 ||
      ::stat(info.dli_fname, &status) != 0) {
    return std::nullopt;
  }
  return status.st_uid;
}

// Whether a program or library may run with this process's rights; else why not.
Result<void> may_run(const fs::path& path, std::string_view what) {
  const auto file = cache::open_trusted_file(
      path, {cache::Trust::kInstalled, what, cache::IfMissing::kFail, 0, own_files_owner()});
  // What cannot be read can still be run.
  if (file || file.error().reason != Reason::kUnsafe) return {};
  return file.error();
}

// Collects candidates in search order, until it has what was asked for.
class Search {
 public:
  Search(Extent extent, std::string_view what) : extent_(extent), what_(what) {}

  bool done() const { return extent_ == Extent::kFirst && !found_.files.empty(); }

  void look_at(const fs::path& path) {
    found_.tried.push_back(path.string());
    if (!is_file(path)) return;
    if (const auto safe = may_run(path, what_); !safe) {
      found_.tried.back() += ": not used";
      found_.refused.push_back(safe.error().message);
      return;
    }
    if (extent_ == Extent::kAll) {
      // A file under two names is one candidate.
      std::error_code error;
      fs::path real = fs::canonical(path, error);
      if (error || std::find(seen_.begin(), seen_.end(), real) != seen_.end()) return;
      seen_.push_back(std::move(real));
    }
    found_.files.push_back(path);
  }

  void look(std::span<const fs::path> directories, std::span<const std::string_view> names) {
    for (const fs::path& directory : directories) {
      for (const std::string_view name : names) {
        if (done()) return;
        look_at(directory / name);
      }
    }
  }

  Candidates take() { return std::move(found_); }

 private:
  Extent extent_;
  std::string_view what_;
  Candidates found_;
  std::vector<fs::path> seen_;
};

// A compiler that an option names is trusted by being chosen.
Candidates only(const fs::path& path) {
  Candidates chosen;
  chosen.tried.push_back(path.string());
  if (is_file(path)) chosen.files.push_back(path);
  return chosen;
}

Candidates look_for_library(std::span<const std::string_view> names,
                            std::initializer_list<const char*> usual_places, Extent extent) {
  Search search(extent, "compiler");
  std::vector<fs::path> directories;
  add_loader_directories(directories);
  search.look(directories, names);
  if (search.done()) return search.take();
  const std::size_t looked_at = directories.size();
  add_configured_directories(directories);
  for (const char* place : usual_places) add_once(directories, place);
  search.look(std::span(directories).subspan(looked_at), names);
  return search.take();
}

// A relative part would make what is found depend on the working directory.
std::vector<fs::path> absolute_parts(std::string_view search_path) {
  std::vector<fs::path> directories;
  while (!search_path.empty()) {
    const std::string_view part = search_path.substr(0, search_path.find(':'));
    search_path.remove_prefix(std::min(search_path.size(), part.size() + 1));
    if (part.starts_with('/')) add_once(directories, part);
  }
  return directories;
}

Candidates look_on_path(std::string_view search_path, Extent extent) {
  Search search(extent, "compiler");
  const std::vector<fs::path> directories = absolute_parts(search_path);
  for (const std::string_view name : kHostNames) {
    search.look(directories, std::span(&name, 1));
    if (search.done()) break;
  }
  Candidates found = search.take();
  std::erase_if(found.files,
                [](const fs::path& file) { return ::access(file.c_str(), X_OK) != 0; });
  return found;
}

}  // namespace

Candidates find_compiler(CompilerKind kind, const CompilersOptions& options, Extent extent) {
  switch (kind) {
    case CompilerKind::kNvrtc:
      if (!options.nvrtc.empty()) return only(options.nvrtc);
      return look_for_library(kNvrtcNames, {"/usr/local/cuda/lib64", "/opt/cuda/lib64"}, extent);
    case CompilerKind::kHiprtc: {
      if (!options.hiprtc.empty()) return only(options.hiprtc);
      if (options.hiprtc_prefix.empty()) {
        return look_for_library(kHiprtcNames, {"/opt/rocm/lib"}, extent);
      }
      Search search(extent, "compiler");
      for (const std::string_view part : kPrefixDirectories) {
        const fs::path directory = options.hiprtc_prefix / part;
        search.look(std::span(&directory, 1), kHiprtcNames);
      }
      return search.take();
    }
    case CompilerKind::kHost:
      if (!options.host_compiler.empty()) return only(options.host_compiler);
      return look_on_path(options.search_path, extent);
  }
  return {};
}

Candidates find_worker(const CompilersOptions& options) {
  Search search(Extent::kFirst, "compile worker");
  if (!options.worker.empty()) {
    search.look_at(options.worker);
    return search.take();
  }
  std::vector<fs::path> directories;
  const auto add_home = [&](const fs::path& home) {
    add_once(directories, home);
    add_once(directories, home / "../libexec/broach");
    add_once(directories, home / "../../libexec/broach");  // Libraries in lib/x86_64-linux-gnu.
    add_once(directories, home / "../bin");
  };
  if (const fs::path own = own_directory(); !own.empty()) add_home(own);
  // A program that broach is linked into may live anywhere: the place broach was configured to be
  // installed to comes before the program's own, and then wherever its command is on the search
  // path.
  add_once(directories, fs::path(BROACH_LIBEXECDIR) / "broach");
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) add_home(program.parent_path());
  for (const fs::path& part : absolute_parts(options.search_path)) {
    add_once(directories, part / "../libexec/broach");
  }
  constexpr std::array<std::string_view, 1> kNames = {"broach-rtc"};
  search.look(directories, kNames);
  return search.take();
}

Result<std::vector<std::string>> prefix_command(const fs::path& prefix) {
  std::string tried;
  for (const std::string_view part : kPrefixLoaders) {
    const fs::path loader = prefix / part;
    tried += loader.string() + "\n";
    if (!is_file(loader)) continue;
    if (const auto safe = may_run(loader, "loader of the hiprtc prefix"); !safe) {
      return Error{ErrorCode::kCompilerMissing, safe.error().message, tried};
    }
    std::string library_path;
    for (const std::string_view directory : kPrefixDirectories) {
      if (!library_path.empty()) library_path += ':';
      library_path += (prefix / directory).string();
    }
    // Without the system's loader cache, nothing of the system's mixes with the prefix.
    return std::vector<std::string>{loader.string(), "--inhibit-cache", "--library-path",
                                    library_path};
  }
  return Error{ErrorCode::kCompilerMissing,
               "hiprtc prefix " + prefix.string() +
                   " has no loader of its own; fill it with tools/fetch-hiprtc " + prefix.string(),
               tried};
}

}  // namespace broach::specializer
