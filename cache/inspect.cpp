// The part of Cache that people and reports ask: listings, records, health.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cache/cache.hpp"
#include "cache/file.hpp"
#include "cache/state.hpp"

namespace broach::cache {
namespace {

struct Listed {
  Object head;  ///< Without payload.
  std::uint64_t bytes = 0;
  std::int64_t used_unix_ms = 0;
};

// Every key once, the first layer's object first.
Result<std::vector<Listed>> list_all(Cache::State& state) {
  std::vector<Listed> all;
  std::set<Key> seen;
  std::vector<DiskLayer*> layers;
  if (state.user() != nullptr) layers.push_back(state.user());
  for (const auto& layer : state.read_only) layers.push_back(layer.get());
  for (DiskLayer* layer : layers) {
    const auto stored = layer->store.list();
    if (!stored) return stored.error();
    for (const StoredObject& object : *stored) {
      if (seen.contains(object.key)) continue;
      auto head = layer->store.read_head(object.key);
      if (!head) continue;
      seen.insert(object.key);
      all.push_back({std::move(*head), object.bytes, object.used_unix_ms});
    }
  }
  for (const auto& object : state.memory.objects()) {
    if (!seen.insert(object->key.key).second) continue;
    Listed row;
    row.head.key = object->key;
    row.head.description = object->description;
    row.head.provenance = object->provenance;
    row.head.limits = object->limits;
    row.bytes = object->payload.size();
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace

Result<std::vector<Entry>> Cache::entries() {
  auto all = list_all(*state_);
  if (!all) return all.error();
  std::vector<Entry> rows;
  for (Listed& listed : *all) {
    Entry row;
    row.key = listed.head.key.key;
    row.description = std::move(listed.head.description);
    row.bytes = listed.bytes;
    row.compile_ms = listed.head.provenance.compile_ms;
    row.created_unix_ms = listed.head.provenance.created_unix_ms;
    row.last_used_unix_ms = listed.used_unix_ms;
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<EntryLimits>> Cache::limits() {
  auto all = list_all(*state_);
  if (!all) return all.error();
  std::vector<EntryLimits> rows;
  for (const Listed& listed : *all) {
    for (const LaunchLimits& limits : listed.head.limits) {
      rows.push_back({listed.head.key.key, listed.head.description, limits});
    }
  }
  return rows;
}

Result<std::optional<Object>> Cache::read(const Key& key) {
  State& state = *state_;
  if (const auto object = state.memory.find(key)) return std::optional<Object>(*object);
  if (state.user() != nullptr) {
    auto found = state.user()->store.read(key);
    if (!found || found->has_value()) return found;
  }
  for (const auto& layer : state.read_only) {
    auto found = layer->store.read(key);
    if (!found || found->has_value()) return found;
  }
  return std::optional<Object>{};
}

Result<std::vector<Key>> Cache::keys_starting_with(std::string_view hex_prefix) {
  State& state = *state_;
  std::set<Key> keys;
  for (const auto& object : state.memory.objects()) {
    if (object->key.key.hex().starts_with(hex_prefix)) keys.insert(object->key.key);
  }
  const auto add = [&](DiskLayer& layer) -> Result<void> {
    const auto stored = layer.store.list(hex_prefix);
    if (!stored) return stored.error();
    for (const StoredObject& object : *stored) keys.insert(object.key);
    return {};
  };
  if (state.user() != nullptr) {
    if (auto added = add(*state.user()); !added) return added.error();
  }
  for (const auto& layer : state.read_only) {
    if (auto added = add(*layer); !added) return added.error();
  }
  return std::vector<Key>(keys.begin(), keys.end());
}

std::optional<Failure> Cache::failure(const Key& key) {
  return state_->records.failure(key, now_unix_ms());
}

void Cache::remember_failure(const Failure& failure) { state_->records.remember(failure); }

Result<std::vector<Failure>> Cache::failures() { return state_->records.failures(now_unix_ms()); }

void Cache::record_device_limits(const DeviceLimits& limits) { state_->records.record(limits); }

Result<std::vector<DeviceLimits>> Cache::device_limits(const Key& key) {
  return state_->records.device_limits(key);
}

void Cache::record_receipt(const Receipt& receipt) { state_->records.record(receipt); }

Result<std::vector<Receipt>> Cache::receipts(const Key& key) {
  return state_->records.receipts(key);
}

void Cache::record_miss(const JournalRow& row) { state_->records.record(row); }

Result<std::vector<JournalRow>> Cache::journal() { return state_->records.journal(); }

std::optional<std::string> Cache::memo(std::string_view name) { return state_->records.memo(name); }

void Cache::remember_memo(std::string_view name, std::string_view value) {
  state_->records.remember_memo(name, value);
}

std::optional<Holder> Cache::holder(const Key&) { return std::nullopt; }

Result<VerifyReport> Cache::verify() {
  VerifyReport report;
  State& state = *state_;
  std::vector<DiskLayer*> layers;
  if (state.user() != nullptr) layers.push_back(state.user());
  for (const auto& layer : state.read_only) layers.push_back(layer.get());
  for (DiskLayer* layer : layers) {
    const auto stored = layer->store.list();
    if (!stored) return stored.error();
    for (const StoredObject& object : *stored) {
      ++report.objects;
      const auto read = layer->store.read(object.key);
      if (read) continue;
      ++report.damaged;
      report.findings.push_back(fmt::format("{}: {}", object.key.hex(), read.error().message));
    }
  }
  return report;
}

Result<GcReport> Cache::gc(const GcRequest& request) {
  GcReport report;
  auto all = entries();
  if (!all) return all.error();
  for (Entry& entry : *all) {
    const bool named =
        std::find(request.keys.begin(), request.keys.end(), entry.key) != request.keys.end();
    if (!named) {
      report.bytes_left += entry.bytes;
      ++report.objects_left;
      continue;
    }
    if (request.mode == GcRequest::Mode::kRemove) {
      state_->memory.erase(entry.key);
      if (state_->user() != nullptr) {
        if (auto removed = state_->user()->store.remove(entry.key); !removed)
          return removed.error();
      }
    }
    report.bytes_removed += entry.bytes;
    report.removed.push_back(std::move(entry));
  }
  return report;
}

Result<std::vector<QuarantineRow>> Cache::quarantine() {
  if (state_->user() == nullptr) return std::vector<QuarantineRow>{};
  return Quarantine(*state_->user()->directory).list();
}

}  // namespace broach::cache
