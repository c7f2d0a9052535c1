#include "cache/directory.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {

using broach::test::TempDir;
namespace fs = std::filesystem;

TEST_CASE("a missing directory is accepted and nothing is written", "[cache][directory]") {
  const TempDir dir;
  const fs::path path = dir.path() / "a" / "b";
  REQUIRE(Directory::open(path, Trust::kOwn));
  CHECK_FALSE(fs::exists(dir.path() / "a"));
}

TEST_CASE("a relative directory is refused by name", "[cache][directory]") {
  const auto refused = Directory::open("cache/here", Trust::kOwn);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("\"cache/here\" is not an absolute path") !=
        std::string::npos);
}

TEST_CASE("a directory that others can write is refused with the way out", "[cache][directory]") {
  const TempDir dir;
  const mode_t mode = GENERATE(mode_t{0770}, mode_t{0702}, mode_t{01777});
  REQUIRE(chmod(dir.path().c_str(), mode) == 0);
  const Trust trust = GENERATE(Trust::kOwn, Trust::kInstalled);
  const auto refused = Directory::open(dir.path(), trust);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kDenied);
  CHECK(refused.error().message.find(dir.path().string()) != std::string::npos);
  CHECK(refused.error().message.find("chmod go-w") != std::string::npos);
}

TEST_CASE("a directory owned by someone else is refused with the way out", "[cache][directory]") {
  if (geteuid() != 0) BROACH_SKIP("giving a directory away needs root");
  const TempDir dir;
  REQUIRE(chown(dir.path().c_str(), 12345, 12345) == 0);
  const Trust trust = GENERATE(Trust::kOwn, Trust::kInstalled);
  const auto refused = Directory::open(dir.path(), trust);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kDenied);
  CHECK(refused.error().message.find("owned by user 12345") != std::string::npos);
  CHECK(refused.error().message.find("BROACH_CACHE_DIR") != std::string::npos);
}

TEST_CASE("root's directory is a read-only layer for anyone and nobody else's own",
          "[cache][directory]") {
  const mode_t mode = 0755 | S_IFDIR;
  CHECK(check_owner_and_mode("/x", 0, mode, Trust::kInstalled));
  if (geteuid() == 0) BROACH_SKIP("root's own directory is root's");
  CHECK_FALSE(check_owner_and_mode("/x", 0, mode, Trust::kOwn));
}

TEST_CASE("a directory below a file cannot be created, and the error says where",
          "[cache][directory]") {
  const TempDir dir;
  const fs::path file = dir.path() / "file";
  fs::copy_file("/proc/self/cmdline", file);
  const auto refused = Directory::open(file / "cache", Trust::kOwn);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find((file / "cache").string()) != std::string::npos);
  const auto in_place = Directory::open(file, Trust::kOwn);
  REQUIRE_FALSE(in_place);
  CHECK(in_place.error().detail == "ENOTDIR");
}

TEST_CASE("a link to the directory is followed when this user made it", "[cache][directory]") {
  const TempDir dir;
  const TempDir other;
  const fs::path link = dir.path() / "link";
  fs::create_directory_symlink(other.path(), link);
  CHECK(Directory::open(link, Trust::kOwn));
  if (geteuid() != 0) BROACH_SKIP("giving a link away needs root");
  REQUIRE(lchown(link.c_str(), 12345, 12345) == 0);
  const auto refused = Directory::open(link, Trust::kOwn);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("symbolic link made by user 12345") != std::string::npos);
}

TEST_CASE("a directory on a read-only file system is open and not writable", "[cache][directory]") {
  const TempDir dir;
  if (mount("none", dir.path().c_str(), "tmpfs", MS_RDONLY, "size=64k,mode=0700") != 0) {
    BROACH_SKIP("mounting a tmpfs needs root");
  }
  auto directory = Directory::open(dir.path(), Trust::kOwn);
  CHECK(directory);
  if (directory) {
    const auto writable = (*directory)->writable();
    CHECK_FALSE(writable);
    if (!writable) CHECK(writable.error().reason == Reason::kReadOnlyFileSystem);
    CHECK((*directory)->filesystem().name == "tmpfs");
  }
  const auto missing = Directory::open(dir.path() / "new", Trust::kOwn);
  CHECK_FALSE(missing);
  if (directory) directory->reset();
  CHECK(umount2(dir.path().c_str(), MNT_DETACH) == 0);
}

TEST_CASE("file systems that other machines can share are known", "[cache][directory]") {
  CHECK(filesystem_named(0x6969).reach == Reach::kNetwork);
  CHECK(filesystem_named(0x65735546).reach == Reach::kNetwork);
  CHECK(filesystem_named(0xEF53).reach == Reach::kLocal);
  // What is behind an unknown one cannot be told.
  CHECK(filesystem_named(0x12345).name == "unknown");
  CHECK(filesystem_named(0x12345).reach == Reach::kNetwork);
}

}  // namespace broach::cache
