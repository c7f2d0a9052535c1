// The part of Cache that people and reports ask: listings, records, health.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "cache/cache.hpp"
#include "cache/file.hpp"
#include "cache/state.hpp"
#include "cache/turn.hpp"

namespace broach::cache {
namespace {

// The index's rows, or what this process knows where there is no index.
template <class Row>
Result<std::vector<Row>> rows_or(Result<std::vector<Row>> indexed, std::vector<Row> own) {
  if (indexed && !indexed->empty()) return indexed;
  return own;
}

}  // namespace

Result<std::vector<Entry>> Cache::entries() {
  flush();
  return list_entries(*state_);
}

Result<std::vector<Entry>> Cache::entries_of(std::string_view layer) {
  flush();
  return list_entries_of(*state_, layer);
}

Result<std::vector<EntryLimits>> Cache::limits() { return list_limits(*state_); }

Result<std::optional<Object>> Cache::read(const Key& key) {
  if (const auto object = state_->memory.find(key)) return std::optional<Object>(*object);
  for (DiskLayer* layer : state_->disk_layers()) {
    auto found = layer->source().read(key);
    if (!found || found->has_value()) return found;
  }
  return std::optional<Object>{};
}

Result<std::optional<Object>> Cache::read_head(const Key& key) {
  if (const auto object = state_->memory.find(key)) {
    return std::optional<Object>(
        Object{object->key, object->description, object->provenance, object->limits, {}});
  }
  std::optional<Error> fault;
  for (DiskLayer* layer : state_->disk_layers()) {
    auto head = layer->source().read_head(key);
    if (head) return std::optional<Object>(std::move(head->object));
    if (!fault && head.error().code != ErrorCode::kNotFound) fault = head.error();
  }
  if (fault) return std::move(*fault);
  return std::optional<Object>{};
}

Result<std::optional<Hit>> Cache::peek(const KeyRecord& key) {
  if (auto object = state_->memory.find(key)) {
    return std::optional<Hit>(Hit{std::move(object), {LayerKind::kMemory, "memory"}});
  }
  std::optional<Error> fault;
  for (DiskLayer* layer : state_->disk_layers()) {
    auto found = layer->source().read(key.key);
    if (!found) {
      if (!fault) fault = found.error();
      continue;  // As a look-up goes on to the next layer.
    }
    if (!*found || (*found)->key.stream != key.stream) continue;
    return std::optional<Hit>(
        Hit{std::make_shared<const Object>(std::move(**found)), layer->layer});
  }
  if (state_->remotes && !state_->distrusted(key.key)) {
    if (auto found = state_->remotes->find(key)) {
      return std::optional<Hit>(
          Hit{std::make_shared<const Object>(std::move(found->object)), std::move(found->layer)});
    }
  }
  if (fault) return std::move(*fault);
  return std::optional<Hit>{};
}

Result<std::uint64_t> Cache::sign(const SecretKey& signer) {
  State& state = *state_;
  if (!state.can_write()) {
    return Error{ErrorCode::kDenied, "no cache directory can be written, so none can be signed",
                 ""};
  }
  const auto stored = state.user->store.list();
  if (!stored) return stored.error();
  std::uint64_t count = 0;
  for (const StoredObject& object : *stored) {
    const auto done = state.user->store.sign(object.key, signer);
    if (!done && done.error().code == ErrorCode::kNotFound) continue;  // Evicted meanwhile.
    if (!done) return done.error();
    ++count;
  }
  return count;
}

Result<std::vector<Key>> Cache::keys_starting_with(std::string_view hex_prefix) {
  std::set<Key> keys;
  for (const auto& object : state_->memory.objects()) {
    if (object->key.key.hex().starts_with(hex_prefix)) keys.insert(object->key.key);
  }
  for (DiskLayer* layer : state_->disk_layers()) {
    const auto stored = layer->source().list(hex_prefix);
    if (!stored) return stored.error();
    for (const StoredObject& object : *stored) keys.insert(object.key);
  }
  return std::vector<Key>(keys.begin(), keys.end());
}

std::optional<Failure> Cache::failure(const Key& key) { return state_->failure(key); }

void Cache::remember_failure(const Failure& failure) { state_->remember(failure); }

void Cache::forget_failure(const Key& key) {
  state_->records.forget_failure(key);
  if (!state_->can_write()) return;
  state_->user->failures.forget(key.hex());
  (void)state_->user->index.forget_failure(key);
}

Result<std::vector<Failure>> Cache::failures() {
  const std::int64_t now = now_unix_ms();
  auto own = state_->records.failures(now);
  if (state_->user == nullptr) return own;
  return rows_or(state_->user->index.failures(now), std::move(own));
}

void Cache::record_device_limits(const DeviceLimits& limits) {
  state_->records.record(limits);
  if (state_->can_write()) (void)state_->user->index.record(limits);
}

Result<std::vector<DeviceLimits>> Cache::device_limits(const Key& key) {
  auto own = state_->records.device_limits(key);
  if (state_->user == nullptr) return own;
  return rows_or(state_->user->index.device_limits(key), std::move(own));
}

void Cache::record_receipt(const Receipt& receipt) {
  state_->records.record(receipt);
  if (state_->can_write()) (void)state_->user->index.record(receipt);
}

Result<std::vector<Receipt>> Cache::receipts(const Key& key) {
  auto own = state_->records.receipts(key);
  if (state_->user == nullptr) return own;
  return rows_or(state_->user->index.receipts(key), std::move(own));
}

void Cache::record_miss(const JournalRow& row) {
  state_->records.record(row);
  if (state_->can_write()) (void)state_->user->index.record(row);
}

Result<std::vector<JournalRow>> Cache::journal() {
  auto own = state_->records.journal();
  if (state_->user == nullptr) return own;
  return rows_or(state_->user->index.journal(), std::move(own));
}

void Cache::clear_journal() {
  state_->records.clear_journal();
  if (state_->can_write()) (void)state_->user->index.clear_journal();
}

void Cache::forget_miss(const JournalRow& row) {
  state_->records.forget_miss(row);
  if (state_->can_write()) (void)state_->user->index.forget_miss(row);
}

// A layer that an image brings knows the compilers that filled it: without them no key of it could
// be named on a machine where none can be started.
std::optional<std::string> Cache::memo(std::string_view name) {
  if (auto own = state_->records.memo(name)) return own;
  for (DiskLayer* layer : state_->disk_layers()) {
    if (auto found = layer->memo(name)) return found;
  }
  return std::nullopt;
}

void Cache::remember_memo(std::string_view name, std::string_view value) {
  if (memo(name) == value) return;
  state_->records.remember_memo(name, value);
  if (!state_->can_write()) return;
  if (!state_->user->memos.remember(name, value)) state_->reporter.count("memo_failed");
}

std::optional<Holder> Cache::holder(const Key& key) {
  if (state_->user == nullptr) return std::nullopt;
  return holder_of(*state_->user->directory, key);
}

Result<VerifyReport> Cache::verify() {
  VerifyReport report;
  for (DiskLayer* layer : state_->disk_layers()) {
    std::vector<Error> unread;
    const auto stored = layer->source().list("", &unread);
    if (!stored) unread.push_back(stored.error());
    for (const Error& error : unread) {
      ++report.unread;
      report.findings.push_back(fmt::format("{}: {}", layer->layer.name, error.message));
    }
    if (!stored) continue;
    for (const StoredObject& object : *stored) {
      const auto sound = layer->source().verify(object.key);
      if (!sound && sound.error().code == ErrorCode::kNotFound) continue;  // Evicted meanwhile.
      ++report.objects;
      if (sound) continue;
      ++report.damaged;
      report.findings.push_back(
          fmt::format("{} in {}: {}", object.key.hex(), layer->layer.name, sound.error().message));
    }
  }
  // A layer that somebody named and that is not used is no proof that all is well.
  for (const LayerStatus& layer : state_->refused) {
    if (layer.layer.kind != LayerKind::kReadOnly) continue;
    ++report.unread;
    report.findings.push_back(fmt::format("{}: {}", layer.layer.name, layer.why));
  }
  return report;
}

Result<GcReport> Cache::gc(const GcRequest& request) {
  flush();
  return collect(*state_, request);
}

Result<std::vector<QuarantineRow>> Cache::quarantine() {
  if (state_->user == nullptr) return std::vector<QuarantineRow>{};
  return Quarantine(*state_->user->directory).list();
}

}  // namespace broach::cache
