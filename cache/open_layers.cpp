// Which layers a cache has: candidates are opened, checked, and refused with the reason.
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "cache/key_file.hpp"
#include "cache/state.hpp"

namespace broach::cache {

void Cache::State::open_layers() {
  open_user_layers();
  open_read_only_layers();
  open_remotes();
  if (user != nullptr) return;
  reporter.tell_once("memory_only",
                     fmt::format("{}: binaries are kept in memory only and compiled again by the "
                                 "next process",
                                 options.directories.empty()
                                     ? "no cache directory is named (BROACH_CACHE_DIR, HOME)"
                                     : "no cache directory can be written"));
}

void Cache::State::refuse(Layer layer, const Error& error) {
  reporter.count("directory_refused");
  reporter.tell_once("refused " + layer.name, error.message + "; that layer is not used");
  LayerStatus status;
  status.layer = std::move(layer);
  status.why = error.message;
  refused.push_back(std::move(status));
}

void Cache::State::open_user_layers() {
  for (const auto& path : options.directories) {
    auto directory = Directory::open(path, Trust::kOwn, options.readers);
    if (!directory) {
      refuse({LayerKind::kUser, path.string()}, directory.error());
      continue;
    }
    const auto writable = (*directory)->writable();
    if (writable && user != nullptr) continue;
    if (writable) {
      user = std::make_unique<UserLayer>(std::move(*directory), reporter);
      continue;
    }
    auto layer = std::make_unique<DirectoryLayer>(std::move(*directory), LayerKind::kReadOnly,
                                                  Access::kReadOnly, reporter);
    layer->why = writable.error().message;
    reporter.count("directory_read_only");
    reporter.tell_once("read-only " + path.string(),
                       writable.error().message + "; it is read and not written");
    read_only.push_back(std::move(layer));
  }
}

void Cache::State::open_read_only_layers() {
  for (const auto& path : options.read_only) {
    auto layer = open_read_only_layer(path);
    if (layer) {
      read_only.push_back(std::move(*layer));
    } else {
      refuse({LayerKind::kReadOnly, path.string()}, layer.error());
    }
  }
}

void Cache::State::open_remotes() {
  if (options.remotes.empty()) return;
  remote::Credentials credentials{trusted_keys(), std::nullopt};
  if (!options.signing_key.empty()) {
    auto key = read_secret_key(options.signing_key);
    if (key) {
      credentials.signing = std::move(*key);
    } else {
      reporter.tell_once("signing_key", key.error().message + "; nothing is uploaded");
    }
  }
  remotes = remote::Tier::open(options, std::move(credentials), reporter);
}

Result<std::unique_ptr<DiskLayer>> Cache::State::open_read_only_layer(
    const std::filesystem::path& path) {
  std::error_code failed;
  if (path.is_absolute() && std::filesystem::is_regular_file(path, failed)) {
    auto bundle = Bundle::open(path, trusted_keys(), options.bundle_trust);
    if (!bundle) return bundle.error();
    return std::unique_ptr<DiskLayer>(std::make_unique<BundleLayer>(std::move(*bundle), reporter));
  }
  return open_read_only_directory(path);
}

// A directory of the user's own or of root's is good as it is; of another's, what is signed is.
Result<std::unique_ptr<DiskLayer>> Cache::State::open_read_only_directory(
    const std::filesystem::path& path) {
  auto directory = Directory::open(path, Trust::kInstalled);
  std::string why;
  if (!directory && directory.error().reason == Reason::kUnsafe && !trusted_keys().keys().empty()) {
    why = directory.error().message + "; so only objects that a trusted key signed are used";
    directory = Directory::open(path, Trust::kSigned);
  }
  if (!directory) return directory.error();
  auto layer = std::make_unique<DirectoryLayer>(std::move(*directory), LayerKind::kReadOnly,
                                                Access::kReadOnly, reporter, &trusted_keys());
  layer->why = std::move(why);
  return std::unique_ptr<DiskLayer>(std::move(layer));
}

const TrustedKeys& Cache::State::trusted_keys() {
  std::call_once(keys_read, [this] {
    keys = TrustedKeys::load(options.trusted_keys);
    for (const std::string& problem : keys.problems()) {
      reporter.count("key_refused");
      reporter.tell_once("key " + problem, problem);
    }
  });
  return keys;
}

}  // namespace broach::cache
