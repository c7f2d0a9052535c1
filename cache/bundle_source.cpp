#include "cache/bundle_source.hpp"

#include <cerrno>
#include <utility>

#include "cache/os_error.hpp"

namespace broach::cache {

bool BundleSource::known_bad(const Key& key) {
  const std::lock_guard lock(mutex_);
  return bad_.contains(key);
}

void BundleSource::remember_bad(const Key& key, const Error& error) {
  if (error.reason == Reason::kNewerFormat) {
    reporter_.count("newer_format");
    return;
  }
  if (error.code != ErrorCode::kDamaged) {
    reporter_.fault("read_failed", error, "treated as a miss");
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!bad_.insert(key).second) return;
  }
  reporter_.count("damaged_ignored");
  reporter_.tell_once("damaged " + bundle_->path().string(),
                      error.message + "; what is damaged in it is not used");
}

std::optional<Object> BundleSource::find(const KeyRecord& key) {
  const BundleEntry* entry = bundle_->entry(key.key);
  if (entry == nullptr || known_bad(key.key)) return std::nullopt;
  auto object = bundle_->object(*entry);
  if (object && object->key.stream != key.stream) {
    object = Error{ErrorCode::kDamaged,
                   object_name(key.key) + " in bundle " + bundle_->path().string() +
                       " is another's: " + first_difference(key, object->key),
                   ""};
  }
  if (object) return std::move(*object);
  remember_bad(key.key, object.error());
  return std::nullopt;
}

Result<std::optional<Object>> BundleSource::read(const Key& key) {
  const BundleEntry* entry = bundle_->entry(key);
  if (entry == nullptr || known_bad(key)) return std::optional<Object>{};
  auto object = bundle_->object(*entry);
  if (object) return std::optional<Object>(std::move(*object));
  remember_bad(key, object.error());
  return object.error();
}

Result<void> BundleSource::verify(const Key& key) {
  const BundleEntry* entry = bundle_->entry(key);
  if (entry == nullptr) return os_error("find", object_name(key), ENOENT);
  const auto object = bundle_->object(*entry);
  return object ? Result<void>() : object.error();
}

Result<StoredHead> BundleSource::read_head(const Key& key) {
  const BundleEntry* entry = bundle_->entry(key);
  if (entry == nullptr) return os_error("find", object_name(key), ENOENT);
  return bundle_->object_head(*entry);
}

Result<std::vector<StoredObject>> BundleSource::list(std::string_view hex_prefix,
                                                     std::vector<Error>*) {
  std::vector<StoredObject> objects;
  for (const BundleEntry& entry : bundle_->entries()) {
    if (!entry.key.hex().starts_with(hex_prefix)) continue;
    objects.push_back({entry.key, entry.object_bytes, 0});
  }
  return objects;
}

}  // namespace broach::cache
