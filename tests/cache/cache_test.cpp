#include "cache/cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cache/key_file.hpp"
#include "tests/cache/samples.hpp"
#include "tests/cache/signing.hpp"
#include "tests/support/as_user.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {

using broach::test::TempDir;
using test::object_path;
using test::Opened;
using test::sample_object;

namespace fs = std::filesystem;

TEST_CASE("a published object is served by memory, then by the directory", "[cache]") {
  const TempDir dir;
  const Object object = sample_object("a");
  {
    Opened cache({dir.path()});
    CHECK_FALSE(cache->find(object.key));
    cache->publish(object);
    const auto hit = cache->find(object.key);
    REQUIRE(hit);
    CHECK(hit->layer.kind == LayerKind::kMemory);
    CHECK(cache->counters()["miss"] == 1);
    CHECK(cache->counters()["published"] == 1);
  }
  Opened cache({dir.path()});
  const auto hit = cache->find(object.key);
  REQUIRE(hit);
  CHECK(hit->layer.kind == LayerKind::kUser);
  CHECK(hit->layer.name == dir.path().string());
  CHECK(*hit->object == object);
  CHECK(cache->find(object.key)->layer.kind == LayerKind::kMemory);
  CHECK(cache.notices->empty());
}

TEST_CASE("the first usable candidate is written, and the refused one is told once", "[cache]") {
  const TempDir open_to_all;
  const TempDir good;
  fs::permissions(open_to_all.path(), fs::perms::all);
  Opened cache({open_to_all.path(), good.path()});
  const Object object = sample_object("a");
  cache->publish(object);
  CHECK(fs::exists(object_path(good.path(), object.key.key)));
  CHECK(test::files_in(open_to_all.path()) == 0);
  REQUIRE(cache.notices->size() == 1);
  CHECK(cache.told(open_to_all.path().string()));
}

TEST_CASE("without a usable directory binaries are kept in memory, said once", "[cache]") {
  // Below a file nothing can be created; in /proc root may try and is refused by mkdir only.
  const fs::path useless = GENERATE(fs::path("/dev/null/cache"), fs::path("/proc/none/cache"));
  Opened cache({useless});
  const Object object = sample_object("a");
  cache->publish(object);
  cache->publish(sample_object("b"));
  REQUIRE(cache->find(object.key));
  CHECK(cache.told("memory only"));
  CHECK(cache.told(useless.parent_path().string()));
  const std::size_t told = cache.notices->size();
  cache->publish(sample_object("c"));
  CHECK(cache.notices->size() == told);
}

TEST_CASE("opening a cache and missing in it write nothing", "[cache]") {
  const TempDir dir;
  {
    Opened cache({dir.path() / "broach"});
    CHECK_FALSE(cache->find(test::sample_key("a")));
    CHECK(cache->entries()->empty());
    CHECK(cache->limits()->empty());
    CHECK(cache->verify()->objects == 0);
    CHECK(cache->layers().size() == 2);
    CHECK_FALSE(cache->failure(test::sample_key("a").key));
    CHECK_FALSE(cache->holder(test::sample_key("a").key));
    CHECK(cache->gc({})->removed.empty());
  }
  CHECK(test::files_in(dir.path()) == 0);
}

TEST_CASE("what was compiled is used when its directory has gone", "[cache]") {
  // As on a network file system that loses a directory or answers late.
  const TempDir dir;
  Opened cache({dir.path() / "broach"});
  const Object object = sample_object("a");
  const auto hit = cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> {
    fs::remove_all(dir.path() / "broach");
    test::write_text(dir.path() / "broach", "a file in the directory's place");
    return object;
  });
  REQUIRE(hit);
  CHECK(*hit->object == object);
  CHECK(cache->find(object.key));
  CHECK(cache->counters()["store_failed"] == 1);
}

TEST_CASE("a cache that names no directory says that it is memory only", "[cache]") {
  Opened cache({});
  CHECK(cache.told("no cache directory is named"));
  CHECK(cache.told("HOME"));
}

TEST_CASE("each refused directory is told by name", "[cache]") {
  const TempDir one;
  const TempDir two;
  fs::permissions(one.path(), fs::perms::all);
  fs::permissions(two.path(), fs::perms::all);
  Opened cache({one.path(), two.path()});
  CHECK(cache.told(one.path().string()));
  CHECK(cache.told(two.path().string()));
  CHECK(cache->counters()["directory_refused"] == 2);
}

TEST_CASE("layers tell what is used, what is not and why", "[cache]") {
  const TempDir open_to_all;
  const TempDir home;
  const TempDir image;
  fs::permissions(open_to_all.path(), fs::perms::all);
  Opened cache({open_to_all.path(), home.path()}, {image.path(), "relative/layer"});
  const auto rows = cache->layers();
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].layer.kind == LayerKind::kMemory);
  CHECK(rows[1].layer.name == home.path().string());
  CHECK(rows[1].usable);
  CHECK(rows[1].filesystem != "unknown");
  CHECK(rows[1].journal == "there is no index yet");
  CHECK(rows[2].layer.kind == LayerKind::kReadOnly);
  CHECK(rows[2].usable);
  CHECK_FALSE(rows[3].usable);
  CHECK(rows[3].why.find("chmod go-w") != std::string::npos);
  CHECK_FALSE(rows[4].usable);
  CHECK(rows[4].why.find("absolute") != std::string::npos);
}

TEST_CASE("a read-only layer serves what the user's directory lacks", "[cache]") {
  const TempDir image;
  const TempDir home;
  const Object object = sample_object("a");
  Opened({image.path()})->publish(object);
  Opened cache({home.path()}, {image.path()});
  const auto hit = cache->find(object.key);
  REQUIRE(hit);
  CHECK(hit->layer.kind == LayerKind::kReadOnly);
  CHECK(hit->layer.name == image.path().string());
}

TEST_CASE("a read-only layer that others can write is refused", "[cache]") {
  const TempDir image;
  const TempDir home;
  const Object object = sample_object("a");
  Opened({image.path()})->publish(object);
  fs::permissions(image.path(), fs::perms::all);
  Opened cache({home.path()}, {image.path()});
  CHECK_FALSE(cache->find(object.key));
  CHECK(cache.told("could plant code"));
}

TEST_CASE("a binary that a driver refused is not served again", "[cache]") {
  const TempDir image;
  const TempDir home;
  const Object object = sample_object("a");
  Opened({image.path()})->publish(object);
  Opened({home.path()})->publish(object);
  Opened cache({home.path()}, {image.path()});
  REQUIRE(cache->find(object.key));
  cache->distrust(object.key.key, "the driver says: invalid image");
  CHECK_FALSE(cache->find(object.key));
  const auto rows = cache->quarantine();
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  CHECK(rows->front().why == "the driver says: invalid image");
  cache->publish(object);
  CHECK(cache->find(object.key));
  cache->distrust(object.key.key, "again");
  CHECK(cache->find(object.key));
}

TEST_CASE("verify counts and sets aside what is damaged", "[cache]") {
  const TempDir dir;
  Opened cache({dir.path()});
  for (const char* name : {"a", "b", "c"}) cache->publish(sample_object(name));
  auto report = cache->verify();
  REQUIRE(report);
  CHECK(report->objects == 3);
  CHECK(report->damaged == 0);
  fs::resize_file(object_path(dir.path(), sample_object("b").key.key), 200);
  report = cache->verify();
  REQUIRE(report);
  CHECK(report->objects == 3);
  CHECK(report->damaged == 1);
  REQUIRE(report->findings.size() == 1);
  CHECK(report->findings[0].find(sample_object("b").key.key.hex()) != std::string::npos);
  CHECK(cache->verify()->objects == 2);
}

TEST_CASE("a folder of objects that cannot be read is said, and the others go on",
          "[cache][trust]") {
  if (geteuid() != 0) BROACH_SKIP("giving a folder away needs root");
  const TempDir dir;
  const Object lost = sample_object("a");
  // Two whose keys begin otherwise.
  std::vector<Object> kept;
  for (char name = 'b'; kept.size() < 2; ++name) {
    Object object = sample_object(std::string(1, name));
    if (object.key.key.bytes[0] != lost.key.key.bytes[0]) kept.push_back(std::move(object));
  }
  {
    Opened cache({dir.path()});
    cache->publish(lost);
    cache->publish(kept[0]);
  }
  const auto shelf = test::object_path(dir.path(), lost.key.key).parent_path();
  REQUIRE(lchown(shelf.c_str(), 12345, 12345) == 0);
  Opened cache({dir.path()});
  const auto entries = cache->entries();
  REQUIRE(entries);
  REQUIRE(!entries->empty());
  CHECK(std::any_of(entries->begin(), entries->end(),
                    [&](const Entry& entry) { return entry.key == kept[0].key.key; }));
  CHECK(cache->counters()["shelf_unread"] > 0);
  CHECK(cache.told(shelf.string()));
  const auto report = cache->verify();
  REQUIRE(report);
  CHECK(report->objects == 1);
  CHECK(report->damaged == 0);
  CHECK(report->unread == 1);
  REQUIRE(report->findings.size() == 1);
  CHECK(report->findings[0].find(shelf.string()) != std::string::npos);
  CHECK(cache->keys_starting_with(kept[0].key.key.hex().substr(0, 4))->size() == 1);
  // One folder that refuses is not the whole directory.
  cache->publish(lost);
  CHECK(cache->counters()["store_failed"] == 1);
  cache->publish(kept[1]);
  CHECK(cache->counters()["published"] == 1);
  CHECK(Opened({dir.path()})->find(kept[1].key));
  // What the index knew of the folder is not forgotten: it may be readable again.
  REQUIRE(lchown(shelf.c_str(), 0, 0) == 0);
  CHECK(Opened({dir.path()})->entries()->size() == 3);
}

TEST_CASE("verify has a finding for each layer that is named and cannot be used",
          "[cache][trust]") {
  const TempDir dir;
  const TempDir open_to_all;
  std::filesystem::permissions(open_to_all.path(), std::filesystem::perms(0777));
  test::write_text(dir.path() / "cut.broach", "no bundle");
  Opened cache({dir.path() / "own"},
               {dir.path() / "cut.broach", open_to_all.path(), dir.path() / "missing"});
  const auto report = cache->verify();
  REQUIRE(report);
  CHECK(report->unread == 3);
  REQUIRE(report->findings.size() == 3);
  CHECK(report->findings[0].find("cut.broach") != std::string::npos);
  CHECK(report->findings[1].find("chmod go-w") != std::string::npos);
  CHECK(report->findings[2].find("missing") != std::string::npos);
}

TEST_CASE("a layer's small facts are known where it is only read, and not where others can write",
          "[cache][trust]") {
  const TempDir dir;
  const auto image = dir.path() / "image";
  Opened({image})->remember_memo("compiler/1/host/0123", "g++ 12");
  CHECK(Opened({}, {image})->memo("compiler/1/host/0123") == "g++ 12");
  CHECK(Opened({dir.path() / "user"}, {image})->memo("compiler/1/host/0123") == "g++ 12");
  CHECK_FALSE(Opened({}, {image})->memo("compiler/1/host/4567"));
  const auto keys = dir.path() / "keys";
  std::filesystem::create_directory(keys);
  std::filesystem::permissions(keys, std::filesystem::perms::owner_all);
  REQUIRE(write_public_key(keys / "a.pub", test::sample_signer(1).public_key()));
  std::filesystem::permissions(image, std::filesystem::perms(0777));
  Opened stranger({}, {image}, {keys});
  CHECK(stranger->layers().back().usable);
  CHECK_FALSE(stranger->memo("compiler/1/host/0123"));
}

TEST_CASE("what is filled for everyone serves another user, and the rest stays private",
          "[cache][trust]") {
  if (geteuid() != 0) BROACH_SKIP("being another user needs root");
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  const Object object = sample_object("a");
  const auto serves = [&](const std::filesystem::path& layer) {
    return broach::test::as_user(23456, [&] {
      Opened cache({}, {layer});
      return cache->find(object.key).has_value() && cache->memo("name") == "value";
    });
  };
  for (const Readers readers : {Readers::kEveryone, Readers::kOwner}) {
    CacheOptions options;
    const auto layer = dir.path() / (readers == Readers::kOwner ? "private" : "image");
    options.directories = {layer};
    options.readers = readers;
    {
      const auto cache = Cache::open(options);
      cache->publish(object);
      cache->remember_memo("name", "value");
    }
    CHECK(serves(layer) == (readers == Readers::kEveryone));
  }
}

TEST_CASE("a miss that was made is forgotten alone", "[cache][index]") {
  const TempDir dir;
  const JournalRow one{"window_rows", "{}", "sm_90a", 1, 10};
  const JournalRow two{"window_rows", "{}", "gfx90a", 1, 10};
  Opened cache({dir.path()});
  cache->record_miss(one);
  cache->record_miss(two);
  cache->forget_miss(one);
  REQUIRE(cache->journal()->size() == 1);
  CHECK(cache->journal()->front().target == "gfx90a");
  CHECK(Opened({dir.path()})->journal()->size() == 1);
}

}  // namespace broach::cache
