#include "specializer/compile/loader_directories.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "specializer/compile/unique_fd.hpp"

namespace broach::specializer {
namespace {

namespace fs = std::filesystem;

// ld.so.conf includes fragments that could include each other.
constexpr int kMaxIncludeDepth = 4;
constexpr std::size_t kMaxConfigurationBytes = 16384;

// A small file's bytes. Not through a stream: the first one in a process costs a locale.
std::string contents_of(const char* file) {
  const rtc::UniqueFd fd(::open(file, O_RDONLY | O_CLOEXEC));
  std::string bytes(kMaxConfigurationBytes, '\0');
  const ssize_t got = fd ? ::read(fd.get(), bytes.data(), bytes.size()) : 0;
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

// Takes the next word off a line; empty at its end.
std::string take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
  line.remove_prefix(word.size());
  return std::string(word);
}

void append_from(std::vector<fs::path>& directories, const char* file, int depth) {
  const std::string text = contents_of(file);
  std::string_view left = text;
  while (!left.empty()) {
    std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    line = line.substr(0, line.find('#'));
    std::string word = take_word(line);
    if (word.empty()) continue;
    if (word != "include") {
      add_once(directories, std::move(word));
      continue;
    }
    const std::string pattern = take_word(line);
    if (depth == kMaxIncludeDepth || pattern.empty()) continue;
    glob_t matches{};
    if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
      for (std::size_t i = 0; i < matches.gl_pathc; ++i) {
        append_from(directories, matches.gl_pathv[i], depth + 1);
      }
    }
    ::globfree(&matches);
  }
}

}  // namespace

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

void add_configured_directories(std::vector<fs::path>& directories) {
  append_from(directories, "/etc/ld.so.conf", 0);
}

}  // namespace broach::specializer
