#include "cache/layers.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cache/bundle_writer.hpp"
#include "cache/key_file.hpp"
#include "tests/cache/samples.hpp"
#include "tests/cache/signing.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {
namespace {

using broach::test::TempDir;
using test::Opened;
using test::sample_key;
using test::sample_object;
using test::sample_signer;

/// A place with a directory of trusted keys that holds the sample signer's.
struct Place {
  Place() {
    std::filesystem::create_directory(keys);
    std::filesystem::permissions(keys, std::filesystem::perms(0700));
    REQUIRE(write_public_key(keys / "sample.pub", sample_signer(1).public_key()));
  }

  std::filesystem::path fill(const char* directory, const std::vector<std::string>& names) const {
    Opened cache({dir.path() / directory});
    for (const std::string& name : names) cache->publish(sample_object(name));
    return dir.path() / directory;
  }

  std::filesystem::path bundle(const char* file, const std::vector<std::string>& names,
                               std::uint8_t signer = 1) const {
    std::vector<Key> keys_in;
    for (const std::string& name : names) keys_in.push_back(sample_key(name).key);
    const SecretKey key = sample_signer(signer);
    const auto read = [&](const Key& wanted) -> Result<Object> {
      for (const std::string& name : names) {
        if (sample_key(name).key == wanted) return sample_object(name);
      }
      return Error{ErrorCode::kNotFound, "", ""};
    };
    REQUIRE(write_bundle(dir.path() / file, keys_in, read, &key));
    return dir.path() / file;
  }

  TempDir dir;
  std::filesystem::path user = dir.path() / "user";
  std::filesystem::path keys = dir.path() / "trusted_keys";
};

const LayerStatus& status_of(const std::vector<LayerStatus>& rows, const std::string& name) {
  for (const LayerStatus& row : rows) {
    if (row.layer.name == name) return row;
  }
  FAIL("no layer " << name);
  return rows.front();
}

}  // namespace

TEST_CASE("a signed bundle serves where it lies, and what it served is promoted",
          "[cache][layers]") {
  const Place place;
  const auto file = place.bundle("kernels.broach", {"a", "b"});
  {
    Opened cache({place.user}, {file}, {place.keys});
    CHECK(cache.notices->empty());
    const auto hit = cache->find(sample_key("a"));
    REQUIRE(hit);
    CHECK(hit->layer.kind == LayerKind::kReadOnly);
    CHECK(hit->layer.name == file.string());
    CHECK(*hit->object == without_circumstances(sample_object("a")));
    CHECK_FALSE(cache->find(sample_key("c")));
    CHECK(cache->counters()["hit_read_only"] == 1);
    const LayerStatus row = status_of(cache->layers(), file.string());
    CHECK(row.usable);
    CHECK(row.journal.find("2 objects, signed by sample") != std::string::npos);
    CHECK(cache->verify()->objects == 2);
    CHECK(cache->limits()->size() == 4);
  }
  std::filesystem::remove(file);
  Opened later({place.user});
  CHECK(later->find(sample_key("a")));
  CHECK_FALSE(later->find(sample_key("b")));
}

TEST_CASE("a bundle that is not trusted is no layer, and the reason is told once",
          "[cache][layers]") {
  const Place place;
  const auto file = place.bundle("stranger.broach", {"a"}, 2);
  for (const bool any_keys : {true, false}) {
    Opened cache({place.user}, {file, file},
                 any_keys ? std::vector{place.keys} : std::vector<std::filesystem::path>{});
    CHECK_FALSE(cache->find(sample_key("a")));
    CHECK(cache.told("not trusted"));
    CHECK(cache.notices->size() == 1);
    const LayerStatus row = status_of(cache->layers(), file.string());
    CHECK_FALSE(row.usable);
    CHECK(row.why.find(sample_signer(2).public_key().id().hex()) != std::string::npos);
  }
}

TEST_CASE("a damaged object in a bundle is a miss, the others serve", "[cache][layers]") {
  const Place place;
  const auto file = place.bundle("kernels.broach", {"a", "b"});
  std::string bytes = test::read_text(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::write_text(file, bytes);
  Opened cache({place.user}, {file}, {place.keys});
  const int found =
      int{cache->find(sample_key("a")).has_value()} + int{cache->find(sample_key("b")).has_value()};
  CHECK(found == 1);
  for (int again = 0; again < 3; ++again) {
    (void)cache->find(sample_key("a"));
    (void)cache->find(sample_key("b"));
  }
  CHECK(cache->counters()["damaged_ignored"] == 1);
  CHECK(cache.told("do not have the digest"));
  CHECK(cache->verify()->damaged == 1);
}

TEST_CASE("layers are looked in by their order, and each can be listed alone", "[cache][layers]") {
  const Place place;
  const auto first = place.fill("first", {"a", "b"});
  const auto second = place.fill("second", {"b", "c"});
  const auto third = place.bundle("third.broach", {"c", "d"});
  place.fill("user", {"e"});
  Opened cache({place.user}, {first, second, third}, {place.keys});
  const auto served_by = [&](const char* name) {
    const auto hit = cache->peek(sample_key(name));
    REQUIRE(hit);
    return *hit ? (*hit)->layer.name : std::string("none");
  };
  CHECK(served_by("a") == first.string());
  CHECK(served_by("b") == first.string());
  CHECK(served_by("c") == second.string());
  CHECK(served_by("d") == third.string());
  CHECK(served_by("e") == place.user.string());
  CHECK(served_by("f") == "none");
  CHECK(cache->entries()->size() == 5);
  CHECK(cache->entries_of(second.string())->size() == 2);
  CHECK(cache->entries_of(third.string())->size() == 2);
  CHECK(cache->entries_of("user")->size() == 1);
  CHECK(cache->entries_of("read_only")->size() == 6);
  CHECK(cache->entries_of("memory")->empty());
  const auto unknown = cache->entries_of("fourth");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::kNotFound);
  CHECK(unknown.error().message.find(third.string()) != std::string::npos);
  // Looking for proof leaves no trace.
  CHECK(cache->counters()["hit_read_only"] == 0);
  CHECK(cache->counters()["promoted"] == 0);
}

TEST_CASE("a directory that others can write serves what a trusted key signed, and nothing else",
          "[cache][layers]") {
  const Place place;
  const auto shared = place.fill("shared", {"a", "b", "c"});
  const auto open_to_all = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(shared)) {
      std::filesystem::permissions(entry,
                                   std::filesystem::perms(entry.is_directory() ? 0777 : 0666));
    }
    std::filesystem::permissions(shared, std::filesystem::perms(0777));
    if (geteuid() == 0) REQUIRE(chown(shared.c_str(), 12345, 12345) == 0);
  };
  const auto sign = [&](std::uint8_t signer) {
    Opened cache({shared});
    const auto count = cache->sign(sample_signer(signer));
    REQUIRE(count);
    CHECK(*count == 3);
  };
  const auto found = [&](const char* name) {
    Opened cache({place.user}, {shared}, {place.keys});
    return cache->find(sample_key(name)).has_value();
  };

  SECTION("signed objects serve") {
    sign(1);
    open_to_all();
    Opened cache({place.user}, {shared}, {place.keys});
    REQUIRE(cache->find(sample_key("a")));
    const LayerStatus row = status_of(cache->layers(), shared.string());
    CHECK(row.usable);
    CHECK(row.why.find("trusted key signed") != std::string::npos);
    CHECK(cache->entries_of(shared.string())->size() == 3);
  }
  SECTION("unsigned ones do not") {
    open_to_all();
    Opened cache({place.user}, {shared}, {place.keys});
    CHECK_FALSE(cache->find(sample_key("a")));
    CHECK(cache->counters()["signature_refused_unsigned"] == 1);
    CHECK(cache->entries_of(shared.string())->empty());
  }
  SECTION("a stranger's do not") {
    sign(2);
    open_to_all();
    Opened cache({place.user}, {shared}, {place.keys});
    CHECK_FALSE(cache->find(sample_key("a")));
    CHECK(cache->counters()["signature_refused_untrusted"] == 1);
  }
  SECTION("a planted object does not, under its own or another's signature") {
    sign(1);
    test::write_text(test::object_path(shared, sample_key("a").key), [] {
      Object planted = sample_object("a");
      planted.payload[0] ^= std::byte{1};
      const auto bytes = encode(planted);
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }());
    const auto signature_path = [&](const char* name) {
      const std::string hex = sample_key(name).key.hex();
      return shared / "signatures" / hex.substr(0, 2) / hex;
    };
    std::filesystem::copy_file(signature_path("c"), signature_path("b"),
                               std::filesystem::copy_options::overwrite_existing);
    open_to_all();
    CHECK_FALSE(found("a"));
    CHECK_FALSE(found("b"));
    CHECK(found("c"));
  }
  SECTION("without a trusted key the directory is refused as before") {
    sign(1);
    open_to_all();
    Opened cache({place.user}, {shared});
    CHECK_FALSE(cache->find(sample_key("a")));
    CHECK(cache.told("could plant code"));
  }
}

TEST_CASE("an object that is published anew loses the signature of the old one",
          "[cache][layers]") {
  const Place place;
  place.fill("user", {"a"});
  Opened cache({place.user});
  REQUIRE(cache->sign(sample_signer(1)));
  const std::string hex = sample_key("a").key.hex();
  const auto signature = place.user / "signatures" / hex.substr(0, 2) / hex;
  REQUIRE(std::filesystem::exists(signature));
  cache->publish(sample_object("a"));
  CHECK_FALSE(std::filesystem::exists(signature));
  REQUIRE(cache->sign(sample_signer(1)));
  GcRequest request;
  request.keys = {sample_key("a").key};
  request.mode = GcRequest::Mode::kRemove;
  REQUIRE(cache->gc(request));
  CHECK_FALSE(std::filesystem::exists(signature));
}

}  // namespace broach::cache
