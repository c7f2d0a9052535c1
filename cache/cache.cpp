#include "cache/cache.hpp"

#include <exception>
#include <utility>

#include "cache/state.hpp"

namespace broach::cache {

Cache::Cache() = default;

Cache::~Cache() {
  if (state_ == nullptr) return;  // Without memory for one.
  try {
    flush();
  } catch (const std::exception&) {
    // Uses that cannot be written down are lost; closing goes on.
  }
}

std::unique_ptr<Cache> Cache::open(CacheOptions options) {
  std::unique_ptr<Cache> cache(new Cache());
  cache->state_ = std::make_unique<State>(std::move(options));
  cache->state_->open_layers();
  return cache;
}

std::optional<Hit> Cache::find(const KeyRecord& key) {
  if (auto hit = state_->look_up_timed(key)) return hit;
  return state_->find_remote(key);
}

void Cache::call_off() noexcept { state_->called_off = true; }

Result<Hit> Cache::find_or_make(const KeyRecord& key, const Maker& make, const MakeTerms& terms) {
  if (auto hit = state_->look_up_timed(key)) return std::move(*hit);
  const Stopwatch watch;
  auto landed = state_->flights.run(key.key, [&] { return state_->make(key, make, terms); });
  if (landed.role == Flights::Role::kJoined) {
    state_->reporter.count("joined");
    state_->metrics.record(Timing::kWaitThread, watch.elapsed());
  }
  return std::move(landed.result);
}

Hit Cache::publish(Object object) {
  if (state_->store(object)) state_->index_stored(object);
  return Hit{state_->memory.insert(std::move(object)), {LayerKind::kMemory, "memory"}};
}

void Cache::distrust(const Key& key, std::string_view why) {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    if (!state.distrusted_keys.insert(key).second) return;
    state.promotions.erase(key);
  }
  state.reporter.count("distrusted");
  state.memory.erase(key);
  if (state.user == nullptr) return;
  state.user->store.set_aside(key, why);
  (void)state.user->index.forget({key});
}

void Cache::flush() { state_->flush(); }

std::vector<LayerStatus> Cache::layers() const {
  State& state = *state_;
  std::vector<LayerStatus> rows;
  LayerStatus memory;
  memory.layer = {LayerKind::kMemory, "memory"};
  memory.usable = true;
  rows.push_back(memory);
  for (DiskLayer* layer : state.disk_layers()) rows.push_back(layer->status());
  rows.insert(rows.end(), state.refused.begin(), state.refused.end());
  if (state.remotes) {
    for (LayerStatus& row : state.remotes->layers()) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<RemoteStatus> Cache::probe_remotes() {
  if (!state_->remotes) return {};
  return state_->remotes->probe();
}

void Cache::share(const Object& object) {
  if (state_->remotes) state_->remotes->share(object);
}

bool Cache::drain_uploads(std::chrono::milliseconds at_most) {
  return !state_->remotes || state_->remotes->drain(at_most);
}

Counters Cache::counters() const { return state_->reporter.counters(); }

Metrics& Cache::metrics() noexcept { return state_->metrics; }

}  // namespace broach::cache
