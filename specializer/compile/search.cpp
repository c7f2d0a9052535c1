#include "specializer/compile/search.hpp"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>

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

// ld.so.conf includes fragments that could include each other.
constexpr int kMaxIncludeDepth = 4;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

void add_once(std::vector<fs::path>& directories, fs::path directory) {
  if (std::find(directories.begin(), directories.end(), directory) == directories.end()) {
    directories.push_back(std::move(directory));
  }
}

// The loader's own answer, so that this room reads no environment.
void add_loader_directories(std::vector<fs::path>& directories) {
  const std::unique_ptr<void, int (*)(void*)> self(::dlopen(nullptr, RTLD_LAZY), ::dlclose);
  Dl_serinfo size;
  if (!self || ::dlinfo(self.get(), RTLD_DI_SERINFOSIZE, &size) != 0) return;
  std::vector<std::max_align_t> storage(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* info = reinterpret_cast<Dl_serinfo*>(storage.data());
  if (::dlinfo(self.get(), RTLD_DI_SERINFOSIZE, info) != 0 ||
      ::dlinfo(self.get(), RTLD_DI_SERINFO, info) != 0) {
    return;
  }
  const Dl_serpath* paths = info->dls_serpath;
  for (unsigned i = 0; i < info->dls_cnt; ++i) add_once(directories, paths[i].dls_name);
}

void add_configured_directories(std::vector<fs::path>& directories, const std::string& file,
                                int depth) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) continue;
    if (word != "include") {
      add_once(directories, word);
      continue;
    }
    std::string pattern;
    if (depth == kMaxIncludeDepth || !(words >> pattern)) continue;
    glob_t matches{};
    if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
      for (std::size_t i = 0; i < matches.gl_pathc; ++i) {
        add_configured_directories(directories, matches.gl_pathv[i], depth + 1);
      }
    }
    ::globfree(&matches);
  }
}

std::vector<fs::path> library_directories(CompilerKind kind) {
  std::vector<fs::path> directories;
  add_loader_directories(directories);
  add_configured_directories(directories, "/etc/ld.so.conf", 0);
  if (kind == CompilerKind::kNvrtc) {
    add_once(directories, "/usr/local/cuda/lib64");
    add_once(directories, "/opt/cuda/lib64");
  } else {
    add_once(directories, "/opt/rocm/lib");
  }
  return directories;
}

// A file under two names is one candidate.
void add_file(Candidates& found, const fs::path& path, std::vector<fs::path>& seen) {
  if (!is_file(path)) return;
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error || std::find(seen.begin(), seen.end(), real) != seen.end()) return;
  seen.push_back(std::move(real));
  found.files.push_back(path);
}

Candidates look(std::span<const fs::path> directories, std::span<const std::string_view> names) {
  Candidates found;
  std::vector<fs::path> seen;
  for (const fs::path& directory : directories) {
    for (const std::string_view name : names) {
      const fs::path path = directory / name;
      found.tried.push_back(path.string());
      add_file(found, path, seen);
    }
  }
  return found;
}

Candidates only(const fs::path& path) {
  Candidates found;
  found.tried.push_back(path.string());
  if (is_file(path)) found.files.push_back(path);
  return found;
}

Candidates look_on_path(const std::string& search_path) {
  Candidates found;
  std::vector<fs::path> seen;
  std::vector<fs::path> directories;
  std::istringstream parts(search_path);
  for (std::string part; std::getline(parts, part, ':');) {
    // A relative part would make the compiler depend on the working directory.
    if (!part.empty() && part.front() == '/') add_once(directories, part);
  }
  for (const std::string_view name : kHostNames) {
    for (const fs::path& directory : directories) {
      const fs::path path = directory / name;
      found.tried.push_back(path.string());
      if (::access(path.c_str(), X_OK) == 0) add_file(found, path, seen);
    }
  }
  return found;
}

fs::path own_directory() {
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&find_worker), &info) == 0) return {};
  std::error_code error;
  const fs::path real = fs::canonical(info.dli_fname, error);
  return error ? fs::path() : real.parent_path();
}

}  // namespace

Candidates find_compiler(CompilerKind kind, const CompilersOptions& options) {
  switch (kind) {
    case CompilerKind::kNvrtc:
      if (!options.nvrtc.empty()) return only(options.nvrtc);
      return look(library_directories(kind), kNvrtcNames);
    case CompilerKind::kHiprtc: {
      if (!options.hiprtc.empty()) return only(options.hiprtc);
      if (options.hiprtc_prefix.empty()) return look(library_directories(kind), kHiprtcNames);
      std::vector<fs::path> directories;
      for (const std::string_view part : kPrefixDirectories) {
        directories.push_back(options.hiprtc_prefix / part);
      }
      return look(directories, kHiprtcNames);
    }
    case CompilerKind::kHost:
      if (!options.host_compiler.empty()) return only(options.host_compiler);
      return look_on_path(options.search_path);
  }
  return {};
}

Candidates find_worker(const CompilersOptions& options) {
  if (!options.worker.empty()) return only(options.worker);
  std::vector<fs::path> directories;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  std::vector<fs::path> homes;
  if (!error) homes.push_back(program.parent_path());
  if (const fs::path own = own_directory(); !own.empty()) add_once(homes, own);
  for (const fs::path& home : homes) {
    add_once(directories, home);
    add_once(directories, home / "../libexec/broach");
    add_once(directories, home / "../../libexec/broach");  // Libraries in lib/x86_64-linux-gnu.
    add_once(directories, home / "../bin");
  }
  constexpr std::array<std::string_view, 1> kNames = {"broach-rtc"};
  return look(directories, kNames);
}

Result<std::vector<std::string>> prefix_command(const fs::path& prefix) {
  std::string tried;
  for (const std::string_view part : kPrefixLoaders) {
    const fs::path loader = prefix / part;
    tried += loader.string() + "\n";
    if (!is_file(loader)) continue;
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
