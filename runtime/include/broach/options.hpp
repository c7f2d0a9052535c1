#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "broach/export.hpp"

namespace broach {

/// What happens when a shape is asked for that no cache layer holds.
enum class FirstUse : std::uint8_t {
  kWait,        ///< The call compiles and returns the specialised kernel.
  kBackground,  ///< A generic kernel of the same bits serves while the specialised one is compiled.
  kNever,       ///< An error that names the shape: for production behind a warmed cache.
};

enum class RemoteUse : std::uint8_t { kReadWrite, kReadOnly };

/// A store of signed binaries that a fleet shares.
///
/// Source:  docs/remote.md.
struct RemoteCache {
  std::string url;          ///< redis://, rediss://, http:// or https://[user[:password]@]host…
  std::string secret;       ///< Redis: the password. HTTP: a bearer token; with a user, a password.
  std::string secret_file;  ///< A file that holds the secret instead.
  std::string certificates;  ///< A PEM file of authorities; empty: the system's.
  RemoteUse use = RemoteUse::kReadWrite;
  std::uint32_t first_byte_ms = 0;  ///< A look-up waits no longer for it; 0: 200.
};

/// How a Runtime is set up. `from_environment` is the only place where broach reads the
/// environment.
///
/// Units:   bytes, seconds and counts as named; 0 takes the default.
/// Source:  README.md lists the variables.
struct BROACH_API Options {
  std::string device = "auto";                 ///< BROACH_DEVICE: auto, host, cuda, cuda:1
  FirstUse first_use = FirstUse::kWait;        ///< BROACH_FIRST_USE: wait, background, never
  std::vector<std::string> cache_directories;  ///< Candidates for the writable layer, best first.
  std::vector<std::string> read_only_caches;   ///< BROACH_CACHE_PATH: directories, bundles.
  std::vector<std::string> trusted_keys;       ///< BROACH_TRUSTED_KEYS: directories of *.pub.
  std::vector<RemoteCache> remotes;            ///< BROACH_REMOTE and BROACH_REMOTE_*.
  std::string signing_key;                     ///< BROACH_SIGNING_KEY: a secret key's file.
  std::vector<std::string> family_path;        ///< BROACH_FAMILY_PATH: family files, directories.
  std::uint64_t cache_bytes = 0;               ///< BROACH_CACHE_BYTES
  std::uint64_t cache_objects = 0;             ///< BROACH_CACHE_OBJECTS
  std::string worker;                          ///< BROACH_WORKER: the broach-rtc program.
  std::string nvrtc;                           ///< BROACH_NVRTC: a libnvrtc file.
  std::string hiprtc;                          ///< BROACH_HIPRTC: a hiprtc library file.
  std::string hiprtc_prefix;  ///< BROACH_HIPRTC_PREFIX: unpacked packages with their own loader.
  std::string cuda_include;   ///< BROACH_CUDA_INCLUDE: CUDA's headers, for families' "cuda" pack.
  std::string hip_include;    ///< BROACH_HIP_INCLUDE: ROCm's headers, for families' "hip" pack.
  std::string host_compiler;  ///< BROACH_CXX
  std::string search_path;    ///< PATH; empty: /usr/local/bin:/usr/bin:/bin
  std::string scratch_directory;  ///< TMPDIR: for compilers' temporary files, tried before others.
  std::uint32_t jobs = 0;         ///< BROACH_JOBS
  std::uint32_t compile_time_limit_s = 0;        ///< BROACH_COMPILE_TIME_LIMIT
  std::uint64_t compile_memory_limit_bytes = 0;  ///< BROACH_COMPILE_MEMORY_LIMIT
  std::function<void(std::string_view)> notice;  ///< Takes one line; default: standard error.

  /// One line a variable whose value cannot be read; Runtime::create refuses while there is one.
  std::vector<std::string> problems;

  static Options from_environment();
};

}  // namespace broach
