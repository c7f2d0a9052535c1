#include "cache/cache.hpp"

#include <utility>

#include <fmt/format.h>

#include "cache/file.hpp"
#include "cache/state.hpp"

namespace broach::cache {
namespace {

constexpr std::uint64_t kMemoryBudgetBytes = std::uint64_t{512} << 20;

std::string_view hit_event(LayerKind kind) {
  switch (kind) {
    case LayerKind::kMemory:
      return "hit_memory";
    case LayerKind::kUser:
      return "hit_user";
    case LayerKind::kReadOnly:
      return "hit_read_only";
    case LayerKind::kRemote:
      return "hit_remote";
  }
  return "hit";
}

}  // namespace

Cache::State::State(CacheOptions opened_with)
    : options(std::move(opened_with)), reporter(options.notice), memory(kMemoryBudgetBytes) {}

void Cache::State::open_layers() {
  const auto refuse = [&](const std::filesystem::path& path, LayerKind kind, const Error& error) {
    LayerStatus status;
    status.layer = {kind, path.string()};
    status.why = error.message;
    refused.push_back(std::move(status));
  };
  for (const auto& path : options.directories) {
    auto directory = Directory::open(path, Trust::kOwn);
    if (!directory) {
      refuse(path, LayerKind::kUser, directory.error());
      reporter.fault("directory_refused", directory.error(), "that directory is not used");
      continue;
    }
    const auto writable = (*directory)->writable();
    const bool take = writable.ok() && user_ == nullptr;
    if (!take && writable.ok()) continue;
    auto layer = std::make_unique<DiskLayer>(
        std::move(*directory), take ? LayerKind::kUser : LayerKind::kReadOnly,
        take ? Access::kReadWrite : Access::kReadOnly, reporter);
    if (take) {
      user_ = std::move(layer);
      continue;
    }
    layer->why = writable.error().message;
    reporter.fault("directory_read_only", writable.error(), "it is read and not written");
    read_only.push_back(std::move(layer));
  }
  for (const auto& path : options.read_only) {
    auto directory = Directory::open(path, Trust::kInstalled);
    if (!directory) {
      refuse(path, LayerKind::kReadOnly, directory.error());
      reporter.fault("layer_refused", directory.error(), "that read-only layer is not used");
      continue;
    }
    read_only.push_back(std::make_unique<DiskLayer>(std::move(*directory), LayerKind::kReadOnly,
                                                    Access::kReadOnly, reporter));
  }
  if (user_ == nullptr && !options.directories.empty()) {
    reporter.tell_once("memory_only",
                       "no cache directory can be written: binaries are kept in memory only and "
                       "compiled again by the next process");
  }
}

bool Cache::State::distrusted(const Key& key) {
  const std::lock_guard lock(distrust_mutex);
  return distrusted_keys.contains(key);
}

Cache::Cache() = default;
Cache::~Cache() = default;

std::unique_ptr<Cache> Cache::open(CacheOptions options) {
  std::unique_ptr<Cache> cache(new Cache());
  cache->state_ = std::make_unique<State>(std::move(options));
  cache->state_->open_layers();
  return cache;
}

std::optional<Hit> Cache::find(const KeyRecord& key) {
  State& state = *state_;
  if (auto object = state.memory.find(key)) {
    state.reporter.count(hit_event(LayerKind::kMemory));
    return Hit{std::move(object), {LayerKind::kMemory, "memory"}};
  }
  const auto look_in = [&](DiskLayer& layer) -> std::optional<Hit> {
    auto object = layer.store.find(key);
    if (!object) return std::nullopt;
    state.reporter.count(hit_event(layer.layer.kind));
    return Hit{state.memory.insert(std::move(*object)), layer.layer};
  };
  if (state.user() != nullptr) {
    if (auto hit = look_in(*state.user())) return hit;
  }
  if (!state.distrusted(key.key)) {
    for (const auto& layer : state.read_only) {
      if (auto hit = look_in(*layer)) return hit;
    }
  }
  state.reporter.count("miss");
  return std::nullopt;
}

Result<Hit> Cache::find_or_make(const KeyRecord& key, const Maker& make) {
  if (auto hit = find(key)) return std::move(*hit);
  auto object = make([](std::string_view) {});
  if (!object) return object.error();
  return publish(std::move(*object));
}

Hit Cache::publish(Object object) {
  State& state = *state_;
  if (state.user() != nullptr) {
    const auto stored = state.user()->store.put(object.key.key, encode(object));
    if (stored) {
      state.reporter.count("published");
    } else {
      state.reporter.fault("store_failed", stored.error(), "the binary is kept in memory only");
    }
  }
  return Hit{state.memory.insert(std::move(object)), {LayerKind::kMemory, "memory"}};
}

void Cache::distrust(const Key& key, std::string_view why) {
  State& state = *state_;
  {
    const std::lock_guard lock(state.distrust_mutex);
    if (!state.distrusted_keys.insert(key).second) return;
  }
  state.reporter.count("distrusted");
  state.memory.erase(key);
  if (state.user() != nullptr) state.user()->store.set_aside(key, why);
}

std::vector<LayerStatus> Cache::layers() const {
  State& state = *state_;
  std::vector<LayerStatus> rows;
  LayerStatus memory;
  memory.layer = {LayerKind::kMemory, "memory"};
  memory.usable = true;
  rows.push_back(memory);
  const auto describe = [&](DiskLayer& layer) {
    LayerStatus row;
    row.layer = layer.layer;
    row.usable = true;
    row.why = layer.why;
    row.filesystem = layer.directory->filesystem().name;
    rows.push_back(std::move(row));
  };
  if (state.user() != nullptr) describe(*state.user());
  for (const auto& layer : state.read_only) describe(*layer);
  rows.insert(rows.end(), state.refused.begin(), state.refused.end());
  return rows;
}

Counters Cache::counters() const { return state_->reporter.counters(); }

}  // namespace broach::cache
