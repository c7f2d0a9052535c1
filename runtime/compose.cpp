#include "runtime/compose.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace broach::runtime {
namespace {

void print_once(std::string_view line) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> printed;
  const std::lock_guard lock(mutex);
  if (!printed.emplace(line).second) return;
  std::fprintf(stderr, "broach: %.*s\n", static_cast<int>(line.size()), line.data());
}

// Compilers' identities outlive the process in the cache that their binaries go to.
specializer::Memo memo_in(const std::shared_ptr<cache::Cache>& cache) {
  return {[cache](std::string_view name) { return cache->memo(name); },
          [cache](std::string_view name, std::string_view value) {
            cache->remember_memo(name, value);
          }};
}

}  // namespace

std::function<void(std::string_view)> notice_of(const Options& options) {
  return options.notice ? options.notice : print_once;
}

cache::CacheOptions cache_options(const Options& options) {
  cache::CacheOptions cache;
  cache.directories.assign(options.cache_directories.begin(), options.cache_directories.end());
  cache.read_only.assign(options.read_only_caches.begin(), options.read_only_caches.end());
  cache.trusted_keys.assign(options.trusted_keys.begin(), options.trusted_keys.end());
  cache.byte_budget = options.cache_bytes;
  cache.object_budget = options.cache_objects;
  cache.compile_limit = std::chrono::seconds(options.compile_time_limit_s);
  cache.signing_key = options.signing_key;
  for (const RemoteCache& remote : options.remotes) {
    cache.remotes.push_back({remote.url, remote.secret, remote.secret_file, remote.certificates,
                             remote.use == RemoteUse::kReadOnly ? cache::RemoteUse::kReadOnly
                                                                : cache::RemoteUse::kReadWrite,
                             std::chrono::milliseconds(remote.first_byte_ms)});
  }
  cache.notice = notice_of(options);
  return cache;
}

specializer::CompilersOptions compilers_options(const Options& options) {
  specializer::CompilersOptions compilers;
  compilers.worker = options.worker;
  compilers.nvrtc = options.nvrtc;
  compilers.hiprtc = options.hiprtc;
  compilers.hiprtc_prefix = options.hiprtc_prefix;
  compilers.cuda_include = options.cuda_include;
  compilers.hip_include = options.hip_include;
  compilers.host_compiler = options.host_compiler;
  compilers.search_path = options.search_path;
  if (!options.scratch_directory.empty()) compilers.scratch.push_back(options.scratch_directory);
  compilers.scratch.insert(compilers.scratch.end(), {"/tmp", "/var/tmp", "/dev/shm"});
  // Where nothing else can be written, the cache's own directory still can.
  compilers.scratch.insert(compilers.scratch.end(), options.cache_directories.begin(),
                           options.cache_directories.end());
  compilers.jobs = options.jobs;
  compilers.time_limit_s = options.compile_time_limit_s;
  compilers.memory_limit_bytes = options.compile_memory_limit_bytes;
  return compilers;
}

specializer::Forge open_forge(const Options& options, cache::Readers readers) {
  cache::CacheOptions layers = cache_options(options);
  layers.readers = readers;
  std::shared_ptr<cache::Cache> cache = cache::Cache::open(std::move(layers));
  auto compilers =
      std::make_shared<specializer::Compilers>(compilers_options(options), memo_in(cache));
  return specializer::Forge(std::move(cache), std::move(compilers));
}

specializer::Forge forge_beside(const specializer::Forge& forge, const Options& options) {
  return forge.with(std::make_shared<specializer::Compilers>(compilers_options(options),
                                                             memo_in(forge.shared_cache())));
}

}  // namespace broach::runtime
