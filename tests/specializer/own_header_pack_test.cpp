#include "specializer/own/header_pack.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "specializer/own/virtual_name.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::specializer::own;
using broach::test::TempDir;

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << bytes;
}

void set_mode(const fs::path& path, mode_t mode) { REQUIRE(chmod(path.c_str(), mode) == 0); }

std::string bytes_in(const Result<const PackFile*>& found) {
  REQUIRE(found);
  return *found == nullptr ? "no file" : (*found)->bytes;
}

}  // namespace

TEST_CASE("a pack's files are known by their path, the first root's before the others'",
          "[specializer][own][pack]") {
  const TempDir dir;
  write(dir.path() / "a/lib/top.h", "#include \"x.h\"\n");
  write(dir.path() / "b/lib/top.h", "second\n");
  write(dir.path() / "b/lib/more.h", "more\n");
  write(dir.path() / "b/lib/deep/file", "file\n");
  const auto pack = HeaderPack::of_directories("lib", {dir.path() / "a", dir.path() / "b"});
  CHECK(bytes_in(pack->find("lib/top.h")) == "#include \"x.h\"\n");
  CHECK((*pack->find("lib/top.h"))->includes.size() == 1);
  CHECK(bytes_in(pack->find("lib/more.h")) == "more\n");
  for (const char* name : {"lib", "lib/absent.h", "absent/more.h", "lib/deep/file/x.h"}) {
    CHECK(bytes_in(pack->find(name)) == "no file");
  }
}

TEST_CASE("a pack's file is read once: what changes later is not seen",
          "[specializer][own][pack]") {
  const TempDir dir;
  write(dir.path() / "a.h", "old\n");
  const auto pack = HeaderPack::of_directories("lib", {dir.path()});
  CHECK(bytes_in(pack->find("a.h")) == "old\n");
  CHECK(bytes_in(pack->find("b.h")) == "no file");
  write(dir.path() / "a.h", "new\n");
  write(dir.path() / "b.h", "new\n");
  CHECK(bytes_in(pack->find("a.h")) == "old\n");
  CHECK(bytes_in(pack->find("b.h")) == "no file");
}

TEST_CASE("a pack that others can write is refused where its files are asked for",
          "[specializer][own][pack]") {
  const TempDir dir;
  write(dir.path() / "open/a.h", "planted\n");
  write(dir.path() / "closed/deep/a.h", "planted\n");
  write(dir.path() / "closed/a.h", "planted\n");
  write(dir.path() / "closed/b.h", "fine\n");
  set_mode(dir.path() / "open", 0777);
  set_mode(dir.path() / "closed/deep", 0777);
  set_mode(dir.path() / "closed/a.h", 0666);
  const auto open = HeaderPack::of_directories("lib", {dir.path() / "open"});
  const auto closed = HeaderPack::of_directories("lib", {dir.path() / "closed"});
  for (const auto& refused : {open->find("a.h"), closed->find("deep/a.h"), closed->find("a.h")}) {
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kDenied);
    CHECK(refused.error().reason == Reason::kUnsafe);
    CHECK(refused.error().message.find("pack \"lib\"") != std::string::npos);
    CHECK(refused.error().message.find("chmod go-w") != std::string::npos);
  }
  CHECK(bytes_in(closed->find("b.h")) == "fine\n");
}

TEST_CASE("a link in a pack is followed as far as each part of the way can be trusted",
          "[specializer][own][pack]") {
  const TempDir dir;
  write(dir.path() / "real/a.h", "linked\n");
  write(dir.path() / "open/a.h", "planted\n");
  set_mode(dir.path() / "open", 0777);
  fs::create_directories(dir.path() / "tree");
  fs::create_symlink(dir.path() / "real/a.h", dir.path() / "tree/a.h");
  fs::create_symlink(dir.path() / "open/a.h", dir.path() / "tree/b.h");
  fs::create_symlink(dir.path() / "real", dir.path() / "tree/folder");
  fs::create_symlink(dir.path() / "nowhere", dir.path() / "tree/c.h");
  const auto pack = HeaderPack::of_directories("lib", {dir.path() / "tree"});
  CHECK(bytes_in(pack->find("a.h")) == "linked\n");
  CHECK(bytes_in(pack->find("folder/a.h")) == "linked\n");
  CHECK(bytes_in(pack->find("c.h")) == "no file");
  const auto refused = pack->find("b.h");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason == Reason::kUnsafe);
}

TEST_CASE("a pack says that it is not there, or that a file is too large",
          "[specializer][own][pack]") {
  const TempDir dir;
  const auto gone = HeaderPack::of_directories("lib", {dir.path() / "gone"});
  const auto missing = gone->find("a.h");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message.find("gone") != std::string::npos);

  const auto absent = HeaderPack::absent("cuda", Error{ErrorCode::kNotFound, "no toolkit", ""});
  REQUIRE_FALSE(absent->find("cuda_fp16.h"));
  CHECK(absent->find("cuda_fp16.h").error().message == "no toolkit");

  write(dir.path() / "big.h", "");
  REQUIRE(truncate((dir.path() / "big.h").c_str(), kMaxPackFileBytes + 1) == 0);
  const auto big = HeaderPack::of_directories("lib", {dir.path()})->find("big.h");
  REQUIRE_FALSE(big);
  CHECK(big.error().code == ErrorCode::kLimitExceeded);
}

TEST_CASE("a virtual name stays within its tree and its bounds", "[specializer][own][pack]") {
  CHECK(virtual_name("a/b.h", "c.h") == "a/c.h");
  CHECK(virtual_name("a/b.h", "../c.h") == "c.h");
  CHECK(virtual_name("", "./a//b/../c.h") == "a/c.h");
  for (const std::string_view name :
       {"", "/a.h", "../a.h", "a/../../b.h", "a/", "a\\b.h", "a\nb", "a<b", "a\"b", ".", "a/.."}) {
    INFO(name);
    CHECK_FALSE(virtual_name("", name));
  }
  CHECK_FALSE(virtual_name("", std::string(kMaxVirtualNameBytes + 1, 'a')));
  std::string deep = "a";
  for (std::size_t i = 0; i < kMaxVirtualNameParts; ++i) deep += "/a";
  CHECK_FALSE(virtual_name("", deep));
}
