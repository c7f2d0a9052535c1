#include "tools/broach/session.hpp"

#include <fmt/format.h>

#include <utility>

namespace broach::tool {

Session::Session(Options options, std::string terminal_name, Output& output)
    : options_(std::move(options)),
      terminal_name_(std::move(terminal_name)),
      output_(output),
      notice_([&output](std::string_view line) { output.note(line); }) {
  options_.notice = [this](std::string_view line) { notice_(line); };
}

void Session::use_cache_directory(std::string directory) {
  options_.cache_directories = {std::move(directory)};
}

cache::CacheOptions Session::cache_options() const {
  cache::CacheOptions options;
  options.directories.assign(options_.cache_directories.begin(), options_.cache_directories.end());
  options.read_only.assign(options_.read_only_caches.begin(), options_.read_only_caches.end());
  options.byte_budget = options_.cache_bytes;
  options.object_budget = options_.cache_objects;
  options.notice = options_.notice;
  return options;
}

std::shared_ptr<cache::Cache> Session::cache() {
  if (!cache_) cache_ = cache::Cache::open(cache_options());
  return cache_;
}

std::unique_ptr<cache::Cache> Session::fresh_cache() const {
  cache::CacheOptions options = cache_options();
  options.notice = [](std::string_view) {};  // The first cache has said it.
  return cache::Cache::open(std::move(options));
}

Result<std::shared_ptr<cache::Cache>> Session::stored_cache() {
  auto opened = cache();
  std::string reasons;
  for (const cache::LayerStatus& status : opened->layers()) {
    if (status.layer.kind != cache::LayerKind::kUser) continue;
    if (status.usable && status.why.empty()) return opened;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", status.layer.name, status.why);
  }
  if (reasons.empty()) {
    return Error{ErrorCode::kIo,
                 "no cache directory: HOME and XDG_CACHE_HOME are not set; pass --cache-dir or set "
                 "BROACH_CACHE_DIR",
                 ""};
  }
  return Error{ErrorCode::kDenied,
               fmt::format("no usable cache directory ({}); pass --cache-dir or set "
                           "BROACH_CACHE_DIR to one of your own",
                           reasons),
               ""};
}

std::shared_ptr<specializer::Compilers> Session::compilers() {
  if (compilers_) return compilers_;
  specializer::CompilersOptions options;
  options.worker = options_.worker;
  options.nvrtc = options_.nvrtc;
  options.hiprtc = options_.hiprtc;
  options.hiprtc_prefix = options_.hiprtc_prefix;
  options.host_compiler = options_.host_compiler;
  options.search_path = options_.search_path;
  options.jobs = options_.jobs;
  options.time_limit_s = options_.compile_time_limit_s;
  options.memory_limit_bytes = options_.compile_memory_limit_bytes;
  specializer::Memo memo;
  memo.find = [cache = cache()](std::string_view name) { return cache->memo(name); };
  memo.remember = [cache = cache()](std::string_view name, std::string_view value) {
    cache->remember_memo(name, value);
  };
  compilers_ = std::make_shared<specializer::Compilers>(std::move(options), std::move(memo));
  return compilers_;
}

specializer::Forge& Session::forge() {
  if (!forge_) forge_ = std::make_unique<specializer::Forge>(cache(), compilers());
  return *forge_;
}

}  // namespace broach::tool
