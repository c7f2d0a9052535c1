// Prints what a program would read from its environment, a line each.
#include <cstdio>

#include "broach/options.hpp"

#if defined(__SANITIZE_ADDRESS__)
// The leak check stops at a program that is setuid, which this one is in its test.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "detect_leaks=0";
}
#endif

int main() {
  const broach::Options options = broach::Options::from_environment();
  for (const auto& path : options.cache_directories) std::printf("cache %s\n", path.c_str());
  for (const auto& path : options.read_only_caches) std::printf("layer %s\n", path.c_str());
  for (const auto& path : options.family_path) std::printf("families %s\n", path.c_str());
  for (const auto& path : options.trusted_keys) std::printf("keys %s\n", path.c_str());
  for (const auto& remote : options.remotes) std::printf("remote %s\n", remote.url.c_str());
  std::printf("worker %s\n", options.worker.c_str());
  std::printf("nvrtc %s\n", options.nvrtc.c_str());
  std::printf("hiprtc %s %s\n", options.hiprtc.c_str(), options.hiprtc_prefix.c_str());
  std::printf("headers %s %s\n", options.cuda_include.c_str(), options.hip_include.c_str());
  std::printf("cxx %s\n", options.host_compiler.c_str());
  std::printf("signing %s\n", options.signing_key.c_str());
  std::printf("path %s\n", options.search_path.c_str());
  return 0;
}
