#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cache/bundle_source.hpp"
#include "cache/cache.hpp"
#include "cache/directory.hpp"
#include "cache/index.hpp"
#include "cache/memo.hpp"
#include "cache/object_source.hpp"
#include "cache/reporter.hpp"
#include "cache/store.hpp"

namespace broach::cache {

/// A layer whose objects lie on a disk: in a directory, or in a bundle.
struct DiskLayer {
  explicit DiskLayer(Layer named) : layer(std::move(named)) {}
  virtual ~DiskLayer() = default;

  virtual ObjectSource& source() = 0;

  /// A small fact that the layer keeps (Cache::memo).
  virtual std::optional<std::string> memo(std::string_view) { return std::nullopt; }

  /// The layer as `doctor` shows it.
  virtual LayerStatus status() = 0;

  Layer layer;
};

/// A directory that is only read.
struct DirectoryLayer : DiskLayer {
  DirectoryLayer(std::unique_ptr<Directory> opened, LayerKind kind, Access access,
                 Reporter& reporter, const TrustedKeys* trusted = nullptr)
      : DiskLayer({kind, opened->path().string()}),
        directory(std::move(opened)),
        store(*directory, access, reporter, trusted),
        memos(*directory, "memo") {}

  ObjectSource& source() override { return store; }
  LayerStatus status() override;

  /// Nobody signs a memo: where others can write, none is believed.
  std::optional<std::string> memo(std::string_view name) override {
    if (directory->trust() == Trust::kSigned) return std::nullopt;
    return memos.find(name);
  }

  std::unique_ptr<Directory> directory;
  Store store;
  Memos memos;
  std::string why;  ///< Why it is not written, where it could have been, or what makes it good.
};

/// The writable layer: its objects, their index, and small facts.
struct UserLayer : DirectoryLayer {
  UserLayer(std::unique_ptr<Directory> opened, Reporter& reporter)
      : DirectoryLayer(std::move(opened), LayerKind::kUser, Access::kReadWrite, reporter),
        index(*directory, directory->filesystem().reach, reporter),
        failures(*directory, "failures") {}

  LayerStatus status() override;

  Index index;
  Memos failures;  ///< By key: whoever waited for a compile that failed must not need a database.
  std::atomic<bool> writable{true};  ///< Turns false for good when the system forbids writing.
};

/// A bundle that is used where it lies.
struct BundleLayer : DiskLayer {
  BundleLayer(std::unique_ptr<Bundle> bundle, Reporter& reporter)
      : DiskLayer({LayerKind::kReadOnly, bundle->path().string()}),
        objects(std::move(bundle), reporter) {}

  ObjectSource& source() override { return objects; }
  LayerStatus status() override;

  BundleSource objects;
};

}  // namespace broach::cache
