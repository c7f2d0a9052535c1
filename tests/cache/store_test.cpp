#include "cache/store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/cache/samples.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {

using broach::test::TempDir;
using test::object_path;
using test::read_text;
using test::sample_key;
using test::sample_object;
using test::write_text;

namespace fs = std::filesystem;

namespace {

struct OpenStore {
  explicit OpenStore(const fs::path& path, Access access = Access::kReadWrite)
      : directory(std::move(*Directory::open(path, Trust::kOwn))),
        store(*directory, access, reporter) {}

  std::uint64_t count(std::string_view event) const { return reporter.counters()[event]; }

  Reporter reporter{Notice()};
  std::unique_ptr<Directory> directory;
  Store store;
};

}  // namespace

TEST_CASE("a stored object is found by its key fields", "[cache][store]") {
  const TempDir dir;
  const Object object = sample_object("a");
  REQUIRE(OpenStore(dir.path()).store.put(object.key.key, encode(object)));
  OpenStore again(dir.path());
  const auto found = again.store.find(object.key);
  REQUIRE(found);
  CHECK(*found == object);
  CHECK_FALSE(again.store.find(sample_key("b")));
  CHECK(again.reporter.counters().values.empty());
}

TEST_CASE("folders have mode 0700 and files 0600", "[cache][store]") {
  const TempDir dir;
  const Object object = sample_object("a");
  const fs::path root = dir.path() / "deep" / "broach";
  REQUIRE(OpenStore(root).store.put(object.key.key, encode(object)));
  const fs::path file = object_path(root, object.key.key);
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  for (const fs::path& folder : {root, root / "objects", file.parent_path(), root / "tmp"}) {
    CHECK(fs::status(folder).permissions() == fs::perms::owner_all);
  }
}

TEST_CASE("a truncated object is a miss and is set aside", "[cache][store]") {
  const TempDir dir;
  const Object object = sample_object("a");
  OpenStore open(dir.path());
  REQUIRE(open.store.put(object.key.key, encode(object)));
  const std::uintmax_t bytes = fs::file_size(object_path(dir.path(), object.key.key));
  const auto cut = static_cast<std::uintmax_t>(GENERATE(0U, 10U, 79U, 80U, 500U, 4200U));
  fs::resize_file(object_path(dir.path(), object.key.key), std::min(cut, bytes - 1));
  CHECK_FALSE(open.store.find(object.key));
  CHECK(open.count("quarantined") == 1);
  CHECK_FALSE(fs::exists(object_path(dir.path(), object.key.key)));
  const auto rows = Quarantine(*open.directory).list();
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  CHECK(rows->front().why.find("bytes") != std::string::npos);

  REQUIRE(open.store.put(object.key.key, encode(object)));
  CHECK(open.store.find(object.key));
}

TEST_CASE("a garbled payload is a miss and is set aside", "[cache][store]") {
  const TempDir dir;
  const Object object = sample_object("a");
  OpenStore open(dir.path());
  REQUIRE(open.store.put(object.key.key, encode(object)));
  const fs::path path = object_path(dir.path(), object.key.key);
  std::string text = read_text(path);
  text[text.size() - 7] = static_cast<char>(text[text.size() - 7] ^ 1);
  write_text(path, text);
  CHECK_FALSE(open.store.find(object.key));
  CHECK(open.count("quarantined") == 1);
}

TEST_CASE("a whole object under another's name is set aside", "[cache][store]") {
  const TempDir dir;
  const Object object = sample_object("a");
  const KeyRecord asked = sample_key("b");
  OpenStore open(dir.path());
  REQUIRE(open.store.put(asked.key, encode(object)));
  CHECK_FALSE(open.store.find(asked));
  CHECK(open.count("quarantined") == 1);
}

TEST_CASE("an object whose digest agrees and whose fields differ is set aside", "[cache][store]") {
  // A collision of the digest cannot be made, so the asking side is given the other's name.
  const TempDir dir;
  const Object object = sample_object("a");
  KeyRecord asked = sample_key("b");
  asked.key = object.key.key;
  OpenStore open(dir.path());
  REQUIRE(open.store.put(object.key.key, encode(object)));
  CHECK_FALSE(open.store.find(asked));
  const auto rows = Quarantine(*open.directory).list();
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  CHECK(rows->front().why.find("\"name\"") != std::string::npos);
}

TEST_CASE("an object of a newer format is a miss and stays", "[cache][store]") {
  const TempDir dir;
  const Object object = sample_object("a");
  OpenStore open(dir.path());
  std::vector<std::byte> bytes = encode(object);
  bytes[8] = std::byte{2};
  bytes[12] = std::byte{0xfd};
  REQUIRE(open.store.put(object.key.key, bytes));
  CHECK_FALSE(open.store.find(object.key));
  CHECK(open.count("newer_format") == 1);
  CHECK(open.count("quarantined") == 0);
  CHECK(fs::exists(object_path(dir.path(), object.key.key)));
}

TEST_CASE("what is planted in an object's place is not followed and is set aside",
          "[cache][store]") {
  const TempDir dir;
  const TempDir elsewhere;
  const Object object = sample_object("a");
  OpenStore open(dir.path());
  REQUIRE(open.store.put(object.key.key, encode(object)));
  const fs::path path = object_path(dir.path(), object.key.key);
  const fs::path target = elsewhere.path() / "object";
  fs::rename(path, target);
  SECTION("a symbolic link to a whole object") { fs::create_symlink(target, path); }
  SECTION("a dangling link") { fs::create_symlink(elsewhere.path() / "none", path); }
  SECTION("a directory") { fs::create_directories(path / "inside"); }
  SECTION("a pipe") { REQUIRE(mkfifo(path.c_str(), 0600) == 0); }
  SECTION("a file that anyone can write") {
    fs::copy_file(target, path);
    fs::permissions(path, fs::perms::all);
  }
  CHECK_FALSE(open.store.find(object.key));
  CHECK(open.count("quarantined") == 1);
  CHECK(fs::exists(target));
  REQUIRE(open.store.put(object.key.key, encode(object)));
  CHECK(open.store.find(object.key));
}

TEST_CASE("a symbolic link in a folder's place is not followed", "[cache][store]") {
  const TempDir dir;
  const TempDir elsewhere;
  const Object object = sample_object("a");
  OpenStore(dir.path()).store.put(object.key.key, encode(object)).ok();
  const fs::path planted = GENERATE(fs::path("objects"), fs::path("objects/xx"), fs::path("tmp"));
  fs::path name = planted;
  if (planted.filename() == "xx") name = fs::path("objects") / object.key.key.hex().substr(0, 2);
  fs::rename(dir.path() / name, elsewhere.path() / "moved");
  fs::create_directory_symlink(elsewhere.path() / "moved", dir.path() / name);
  OpenStore open(dir.path());
  if (planted != "tmp") CHECK_FALSE(open.store.find(object.key));
  const auto put = open.store.put(object.key.key, encode(object));
  REQUIRE_FALSE(put);
  CHECK(put.error().message.find("not followed") != std::string::npos);
}

TEST_CASE("a damaged object of a read-only store is ignored where it lies", "[cache][store]") {
  const TempDir dir;
  const Object object = sample_object("a");
  REQUIRE(OpenStore(dir.path()).store.put(object.key.key, encode(object)));
  fs::resize_file(object_path(dir.path(), object.key.key), 100);
  OpenStore open(dir.path(), Access::kReadOnly);
  CHECK_FALSE(open.store.find(object.key));
  CHECK_FALSE(open.store.find(object.key));
  CHECK(open.count("damaged_ignored") == 1);
  CHECK(fs::exists(object_path(dir.path(), object.key.key)));
}

TEST_CASE("the quarantine keeps a bounded number of files", "[cache][quarantine]") {
  const TempDir dir;
  OpenStore open(dir.path());
  const Object object = sample_object("a", 16);
  for (int i = 0; i < 80; ++i) {
    REQUIRE(open.store.put(object.key.key, encode(object)));
    open.store.set_aside(object.key.key, "test");
  }
  const auto rows = Quarantine(*open.directory).list();
  REQUIRE(rows);
  CHECK(rows->size() == 64);
}

TEST_CASE("a directory that is removed underfoot is made again", "[cache][store]") {
  const TempDir dir;
  const fs::path root = dir.path() / "broach";
  const Object object = sample_object("a");
  OpenStore open(root);
  REQUIRE(open.store.put(object.key.key, encode(object)));
  fs::remove_all(root);
  CHECK_FALSE(open.store.find(object.key));
  REQUIRE(open.store.put(object.key.key, encode(object)));
  CHECK(open.store.find(object.key));
  CHECK(open.count("directory_reopened") == 1);
}

TEST_CASE("a sweep removes the temporary files of writers that died",
          "[cache][store][multiprocess]") {
  const TempDir dir;
  const Object object = sample_object("a");
  OpenStore open(dir.path());
  REQUIRE(open.store.put(object.key.key, encode(object)));
  write_text(dir.path() / "tmp" / "1.0.leftover", "half an obj");
  CHECK(open.store.sweep() == 1);
  CHECK(test::files_in(dir.path() / "tmp") == 0);
}

TEST_CASE("a use is dated in the object's file, also after the clock was set back",
          "[cache][store]") {
  const TempDir dir;
  const Object object = sample_object("a");
  OpenStore open(dir.path());
  REQUIRE(open.store.put(object.key.key, encode(object)));
  const std::int64_t offset_s = GENERATE(std::int64_t{-86'400}, std::int64_t{86'400});
  const timespec times[2] = {{now_unix_ms() / 1000 + offset_s, 0}, {0, UTIME_OMIT}};
  const fs::path path = object_path(dir.path(), object.key.key);
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  REQUIRE(open.store.find(object.key));
  const auto listed = open.store.list();
  REQUIRE(listed);
  CHECK(std::abs(listed->front().used_unix_ms - now_unix_ms()) < 60'000);
}

TEST_CASE("a listing, a check and an inspection are no use of an object", "[cache][store]") {
  const TempDir dir;
  const Object object = sample_object("a");
  OpenStore open(dir.path());
  REQUIRE(open.store.put(object.key.key, encode(object)));
  // Older than the last change: what a mount that keeps access times lazily would date anew.
  const timespec times[2] = {{1'600'000'000, 0}, {0, UTIME_OMIT}};
  REQUIRE(utimensat(AT_FDCWD, object_path(dir.path(), object.key.key).c_str(), times, 0) == 0);
  REQUIRE(open.store.read_head(object.key.key));
  REQUIRE(open.store.read(object.key.key));
  REQUIRE(open.store.verify(object.key.key));
  const auto used = [&] { return open.store.list()->front().used_unix_ms; };
  CHECK(used() == std::int64_t{1'600'000'000'000});
  REQUIRE(open.store.find(object.key));
  CHECK(used() > std::int64_t{1'600'000'000'000});
}

TEST_CASE("objects are listed by prefix in the order of their keys", "[cache][store]") {
  const TempDir dir;
  OpenStore open(dir.path());
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    const Object object = sample_object(name);
    REQUIRE(open.store.put(object.key.key, encode(object)));
  }
  write_text(dir.path() / "objects" / "notes.txt", "not an object");
  const auto all = open.store.list();
  REQUIRE(all);
  REQUIRE(all->size() == 5);
  CHECK(std::is_sorted(all->begin(), all->end(), [](auto& a, auto& b) { return a.key < b.key; }));
  for (const std::size_t digits : {1U, 2U, 3U, 32U}) {
    const auto some = open.store.list(all->front().key.hex().substr(0, digits));
    REQUIRE(some);
    REQUIRE_FALSE(some->empty());
    CHECK(some->front().key == all->front().key);
  }
  CHECK(open.store.list("zz")->empty());
}

}  // namespace broach::cache
