#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache.hpp"
#include "cache/key.hpp"
#include "cache/object.hpp"

namespace broach::cache::test {

inline KeyRecord sample_key(std::string_view name) {
  return KeyBuilder().field("family", "window_rows").field("name", name).finish();
}

/// An object with something in every field, and a payload that depends on the name.
inline Object sample_object(std::string_view name, std::size_t payload_bytes = 4096) {
  Object object;
  object.key = sample_key(name);
  object.description = {"window_rows", "sm_90a",          R"({"head_dim":256})",
                        "0123",        "NVRTC 13.0 test", "cubin"};
  object.provenance = {1'700'000'000'000, 120,         "0.1.0",
                       "NVRTC 13.0.88",   "CUDA 13.0", "ptxas info: none\n"};
  LaunchLimits limits;
  limits.function = "decode_part";
  limits.registers = 64;
  limits.spill_bytes = 0;
  limits.max_threads = 1024;
  limits.source = "cubin";
  object.limits.push_back(limits);
  limits.function = "decode_merge";
  limits.sgprs = 7;
  limits.spill_bytes.reset();
  object.limits.push_back(limits);
  object.payload.resize(payload_bytes);
  std::size_t i = 0;
  for (std::byte& byte : object.payload) {
    byte = static_cast<std::byte>((i * 131 + static_cast<unsigned char>(name[i % name.size()])) &
                                  0xff);
    ++i;
  }
  return object;
}

inline std::filesystem::path object_path(const std::filesystem::path& cache, const Key& key) {
  return cache / "objects" / key.hex().substr(0, 2) / key.hex();
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
}

inline std::size_t files_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator at(folder, ignored), end; at != end; ++at) ++count;
  return count;
}

/// Opens a cache that collects its notices.
struct Opened {
  explicit Opened(std::vector<std::filesystem::path> directories,
                  std::vector<std::filesystem::path> read_only = {},
                  std::vector<std::filesystem::path> trusted_keys = {}) {
    CacheOptions options;
    options.directories = std::move(directories);
    options.read_only = std::move(read_only);
    options.trusted_keys = std::move(trusted_keys);
    options.notice = [lines = notices](std::string_view line) { lines->emplace_back(line); };
    cache = Cache::open(std::move(options));
  }
  Cache* operator->() { return cache.get(); }

  bool told(std::string_view part) const {
    for (const std::string& line : *notices) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }

  std::shared_ptr<std::vector<std::string>> notices = std::make_shared<std::vector<std::string>>();
  std::unique_ptr<Cache> cache;
};

}  // namespace broach::cache::test
