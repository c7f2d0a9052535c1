#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "cache/key_file.hpp"
#include "tests/cache/samples.hpp"
#include "tests/cache/signing.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache::remote::test {

/// A machine of a fleet: a cache directory of its own, keys, and what its cache said.
class Machine {
 public:
  /// Signs with the key of seed `signs`, and trusts those of `trusts`; 0 is nobody's.
  explicit Machine(std::uint8_t signs = 1, std::vector<std::uint8_t> trusts = {1}) {
    std::filesystem::create_directory(keys());
    std::filesystem::permissions(keys(), std::filesystem::perms::owner_all);
    for (const std::uint8_t seed : trusts) {
      const auto path = keys() / (std::to_string(seed) + ".pub");
      if (!write_public_key(path, cache::test::sample_signer(seed).public_key())) std::abort();
    }
    options.directories = {dir.path() / "cache"};
    options.trusted_keys = {keys()};
    options.notice = [lines = notices](std::string_view line) { lines->emplace_back(line); };
    // A machine that runs other tests beside this one is slow, not stalled.
    options.upload_drain = std::chrono::seconds(60);
    if (signs == 0) return;
    options.signing_key = dir.path() / "secret";
    if (!write_secret_key(options.signing_key, cache::test::sample_signer(signs))) std::abort();
  }

  Machine& with_remote(const std::string& url, RemoteUse use = RemoteUse::kReadWrite) {
    RemoteOptions remote;
    remote.url = url;
    remote.use = use;
    remote.first_byte = std::chrono::seconds(30);
    options.remotes.push_back(remote);
    return *this;
  }

  std::unique_ptr<Cache> open() const { return Cache::open(options); }

  bool told(std::string_view part) const {
    for (const std::string& line : *notices) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }

  broach::test::TempDir dir;
  CacheOptions options;
  std::shared_ptr<std::vector<std::string>> notices = std::make_shared<std::vector<std::string>>();

 private:
  std::filesystem::path keys() const { return dir.path() / "keys"; }
};

/// Asks for an object and makes it where nobody has it.
inline Result<Hit> ask(Cache& cache, const Object& object) {
  return cache.find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; });
}

}  // namespace broach::cache::remote::test
