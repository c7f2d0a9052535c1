// Listings: what the layers hold, from the index where there is one and from the objects' heads
// where there is none.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "cache/state.hpp"

namespace broach::cache {
namespace {

// Rows that go into the index in one transaction: long enough to be quick, short enough for others
// to get their turn.
constexpr std::size_t kBatch = 512;

std::vector<Entry> entries_from_heads(ObjectSource& source,
                                      const std::vector<StoredObject>& stored) {
  std::vector<Entry> rows;
  for (const StoredObject& object : stored) {
    auto head = source.read_head(object.key);
    if (!head) continue;  // Damaged: `verify` names it and a look-up sets it aside.
    Entry& row = rows.emplace_back();
    row.key = object.key;
    row.description = std::move(head->object.description);
    row.bytes = object.bytes;
    row.compile_ms = head->object.provenance.compile_ms;
    row.created_unix_ms = head->object.provenance.created_unix_ms;
    row.last_used_unix_ms = object.used_unix_ms;
  }
  return rows;
}

Entry entry_in_memory(const Object& object) {
  Entry row;
  row.key = object.key.key;
  row.description = object.description;
  row.bytes = object.payload.size();
  row.compile_ms = object.provenance.compile_ms;
  row.created_unix_ms = object.provenance.created_unix_ms;
  row.layer = {LayerKind::kMemory, "memory"};
  return row;
}

}  // namespace

Result<void> reconcile(Index& index, ObjectSource& source) {
  // The rows first: an object whose row another process adds in between is then found, not missed.
  auto rows = index.entries();
  if (!rows && rows.error().code != ErrorCode::kNotFound) return rows.error();
  std::vector<Error> unread;
  const auto stored = source.list("", &unread);
  if (!stored) return stored.error();
  if (!rows) {
    // An index that is not there yet is made by the first row that goes into it.
    if (stored->empty()) return {};
    rows = std::vector<Entry>{};
  }
  std::map<Key, const Entry*> known;
  for (const Entry& row : *rows) known.emplace(row.key, &row);

  std::vector<IndexedObject> batch;
  std::map<Key, Use> used;
  const auto write_batch = [&]() -> Result<void> {
    if (batch.empty()) return {};
    auto written = index.record(batch);
    batch.clear();
    return written;
  };
  for (const StoredObject& object : *stored) {
    const auto row = known.find(object.key);
    const bool same = row != known.end() && row->second->bytes == object.bytes;
    if (same && object.used_unix_ms > row->second->last_used_unix_ms) {
      used[object.key].last_unix_ms = object.used_unix_ms;
    }
    if (row != known.end()) known.erase(row);
    if (same) continue;
    auto head = source.read_head(object.key);
    if (!head) continue;
    batch.push_back(
        {std::move(head->object), object.bytes, head->header.payload_digest, object.used_unix_ms});
    if (batch.size() < kBatch) continue;
    if (auto written = write_batch(); !written) return written;
  }
  if (auto written = write_batch(); !written) return written;
  if (!used.empty()) {
    if (auto dated = index.add_uses(used); !dated) return dated;
  }
  std::vector<Key> gone;
  if (unread.empty()) {
    for (const auto& [key, row] : known) gone.push_back(key);
  }
  if (!gone.empty()) {
    if (auto forgotten = index.forget(gone); !forgotten) return forgotten;
  }
  const auto counted = index.usage();
  return counted && !*counted ? index.count_usage() : Result<void>();
}

Result<std::vector<Entry>> list_entries(DiskLayer& layer, Index* index) {
  std::vector<Entry> rows;
  const bool indexed = index != nullptr && reconcile(*index, layer.source());
  auto from_index = indexed ? index->entries() : Result<std::vector<Entry>>(std::vector<Entry>{});
  if (indexed && from_index) {
    rows = std::move(*from_index);
  } else {
    const auto stored = layer.source().list("");
    if (!stored) return stored.error();
    rows = entries_from_heads(layer.source(), *stored);
  }
  for (Entry& row : rows) row.layer = layer.layer;
  return rows;
}

Result<std::vector<Entry>> list_entries(Cache::State& state) {
  std::vector<Entry> all;
  std::set<Key> seen;
  for (DiskLayer* layer : state.disk_layers()) {
    Index* index = layer == state.user.get() ? &state.user->index : nullptr;
    auto rows = list_entries(*layer, index);
    if (!rows) return rows.error();
    for (Entry& row : *rows) {
      if (seen.insert(row.key).second) all.push_back(std::move(row));
    }
  }
  for (const auto& object : state.memory.objects()) {
    if (seen.insert(object->key.key).second) all.push_back(entry_in_memory(*object));
  }
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  return all;
}

Result<std::vector<Entry>> list_entries_of(Cache::State& state, std::string_view name) {
  std::vector<Entry> rows;
  std::string known = "memory";
  bool found = name == "memory";
  if (found) {
    for (const auto& object : state.memory.objects()) rows.push_back(entry_in_memory(*object));
  }
  for (DiskLayer* layer : state.disk_layers()) {
    const bool user = layer == state.user.get();
    known += (user ? ", user, " : ", ") + layer->layer.name;
    const bool named =
        layer->layer.name == name || (user && name == "user") || (!user && name == "read_only");
    if (!named) continue;
    found = true;
    auto more = list_entries(*layer, user ? &state.user->index : nullptr);
    if (!more) return more.error();
    std::move(more->begin(), more->end(), std::back_inserter(rows));
  }
  if (!found && name != "read_only") {
    return Error{ErrorCode::kNotFound,
                 "no cache layer \"" + std::string(name) + "\"; the layers are " + known, ""};
  }
  return rows;
}

Result<std::vector<EntryLimits>> list_limits(Cache::State& state) {
  std::vector<EntryLimits> all;
  std::set<Key> seen;
  const auto add = [&](const Object& head) {
    if (!seen.insert(head.key.key).second) return;
    for (const LaunchLimits& limits : head.limits) {
      all.push_back({head.key.key, head.description, limits});
    }
  };
  if (state.user != nullptr && reconcile(state.user->index, state.user->store)) {
    if (auto rows = state.user->index.limits()) {
      all = std::move(*rows);
      for (const EntryLimits& row : all) seen.insert(row.key);
    }
  }
  for (DiskLayer* layer : state.disk_layers()) {
    const auto stored = layer->source().list("");
    if (!stored) return stored.error();
    for (const StoredObject& object : *stored) {
      if (seen.contains(object.key)) continue;
      if (const auto head = layer->source().read_head(object.key)) add(head->object);
    }
  }
  for (const auto& object : state.memory.objects()) add(*object);
  return all;
}

}  // namespace broach::cache
