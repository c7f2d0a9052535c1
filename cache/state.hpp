#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "cache/directory.hpp"
#include "cache/memory.hpp"
#include "cache/records.hpp"
#include "cache/reporter.hpp"
#include "cache/store.hpp"

namespace broach::cache {

/// One directory as a layer.
struct DiskLayer {
  DiskLayer(std::unique_ptr<Directory> opened, LayerKind kind, Access access, Reporter& reporter)
      : directory(std::move(opened)),
        layer{kind, directory->path().string()},
        store(*directory, access, reporter) {}

  std::unique_ptr<Directory> directory;
  Layer layer;
  Store store;
  std::string why;  ///< Why it is not written, where it could have been.
};

/// What a Cache is made of.
struct Cache::State {
  explicit State(CacheOptions opened_with);

  void open_layers();
  bool distrusted(const Key& key);

  /// The writable directory, or null: memory only.
  DiskLayer* user() { return user_.get(); }

  CacheOptions options;
  Reporter reporter;
  MemoryLayer memory;
  Records records;
  std::unique_ptr<DiskLayer> user_;
  std::vector<std::unique_ptr<DiskLayer>> read_only;
  std::vector<LayerStatus> refused;  ///< Candidates that cannot be used, with the reason.

  std::mutex distrust_mutex;
  std::set<Key> distrusted_keys;
};

}  // namespace broach::cache
