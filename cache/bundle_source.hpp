#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "cache/bundle.hpp"
#include "cache/object_source.hpp"
#include "cache/reporter.hpp"

namespace broach::cache {

/// A bundle as a place to find objects in. One that is damaged is reported once and is a miss.
///
/// Threads: any.
class BundleSource : public ObjectSource {
 public:
  BundleSource(std::unique_ptr<Bundle> bundle, Reporter& reporter)
      : bundle_(std::move(bundle)), reporter_(reporter) {}

  std::optional<Object> find(const KeyRecord& key) override;
  Result<std::optional<Object>> read(const Key& key) override;
  Result<void> verify(const Key& key) override;
  Result<StoredHead> read_head(const Key& key) override;
  Result<std::vector<StoredObject>> list(std::string_view hex_prefix,
                                         std::vector<Error>* unread = nullptr) override;

  const Bundle& bundle() const noexcept { return *bundle_; }

 private:
  bool known_bad(const Key& key);
  void remember_bad(const Key& key, const Error& error);

  std::unique_ptr<Bundle> bundle_;
  Reporter& reporter_;
  std::mutex mutex_;
  std::set<Key> bad_;  ///< Damaged: not decompressed again at every look.
};

}  // namespace broach::cache
