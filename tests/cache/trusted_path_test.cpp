#include "cache/trusted_path.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "cache/directory.hpp"
#include "cache/key_file.hpp"
#include "cache/trusted_keys.hpp"
#include "tests/cache/samples.hpp"
#include "tests/cache/signing.hpp"
#include "tests/support/as_user.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {
namespace {

using broach::test::as_user;
using broach::test::in_child;
using broach::test::TempDir;
namespace fs = std::filesystem;

constexpr uid_t kStranger = 12345;
constexpr uid_t kUser = 23456;

void give(const fs::path& path, uid_t user) { REQUIRE(lchown(path.c_str(), user, user) == 0); }

void set_mode(const fs::path& path, mode_t mode) { REQUIRE(chmod(path.c_str(), mode) == 0); }

void make(const fs::path& path) {
  REQUIRE(fs::create_directory(path));
  set_mode(path, 0755);
}

/// top/a/b/c, with a file in c, a link to a beside it, and a stranger's directory of the same
/// shape.
struct Tree {
  Tree() {
    set_mode(dir.path(), 0755);
    for (const char* place : {"ours", "theirs"}) {
      const fs::path top = dir.path() / place;
      make(top);
      make(top / "a");
      make(top / "a" / "b");
      make(top / "a" / "b" / "c");
      test::write_text(top / "a" / "b" / "c" / "file", "text\n");
      set_mode(top / "a" / "b" / "c" / "file", 0600);
    }
    for (const auto& part : fs::recursive_directory_iterator(dir.path() / "theirs")) {
      give(part.path(), kStranger);
    }
    give(dir.path() / "theirs", kStranger);
  }

  TempDir dir;
  fs::path ours = dir.path() / "ours";
  fs::path theirs = dir.path() / "theirs";
};

/// What is done to a tree, what is asked for, and the words of the refusal; none: it is allowed.
struct Case {
  const char* name;
  std::function<void(const Tree&)> change;
  const char* asked;
  const char* refused;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"as it is", [](const Tree&) {}, "ours/a/b/c", nullptr},
      {"a parent of a stranger's", [](const Tree& t) { give(t.ours / "a", kStranger); },
       "ours/a/b/c", "owned by user 12345"},
      {"a grandparent of a stranger's", [](const Tree& t) { give(t.ours, kStranger); },
       "ours/a/b/c", "owned by user 12345"},
      {"a directory of a stranger's", [](const Tree& t) { give(t.ours / "a/b/c", kStranger); },
       "ours/a/b/c", "owned by user 12345"},
      {"a parent that its group can write", [](const Tree& t) { set_mode(t.ours / "a", 0775); },
       "ours/a/b/c", "its group could put"},
      {"a parent that anyone can write", [](const Tree& t) { set_mode(t.ours / "a/b", 0757); },
       "ours/a/b/c", "anyone could put"},
      {"a parent that anyone can write, and nobody else's part removed",
       [](const Tree& t) { set_mode(t.ours / "a", 01777); }, "ours/a/b/c", nullptr},
      {"a stranger's sticky parent",
       [](const Tree& t) {
         set_mode(t.ours / "a", 01777);
         give(t.ours / "a", kStranger);
       },
       "ours/a/b/c", "owned by user 12345"},
      {"a sticky directory in the last place",
       [](const Tree& t) { set_mode(t.ours / "a/b/c", 01777); }, "ours/a/b/c",
       "anyone could plant"},
      {"a link of ours on the way",
       [](const Tree& t) { fs::create_directory_symlink(t.ours / "a", t.dir.path() / "link"); },
       "link/b/c", nullptr},
      {"a relative link of ours that climbs",
       [](const Tree& t) { fs::create_directory_symlink("../ours/a/../a/b", t.ours / "link"); },
       "ours/link/c", nullptr},
      {"a link to the place that it is in",
       [](const Tree& t) { fs::create_directory_symlink(".", t.ours / "a/b/c/link"); },
       "ours/a/b/c/link", nullptr},
      {"a stranger's link on the way",
       [](const Tree& t) {
         fs::create_directory_symlink(t.ours / "a", t.dir.path() / "link");
         give(t.dir.path() / "link", kStranger);
       },
       "link/b/c", "symbolic link made by user 12345"},
      {"a stranger's link in the last place",
       [](const Tree& t) {
         fs::create_directory_symlink(t.ours / "a/b/c", t.dir.path() / "link");
         give(t.dir.path() / "link", kStranger);
       },
       "link", "symbolic link made by user 12345"},
      {"a link of ours behind a stranger's",
       [](const Tree& t) {
         fs::create_directory_symlink(t.dir.path() / "second", t.dir.path() / "first");
         fs::create_directory_symlink(t.ours / "a", t.dir.path() / "second");
         give(t.dir.path() / "second", kStranger);
       },
       "first/b/c", "symbolic link made by user 12345"},
      {"a link of ours into a stranger's directory",
       [](const Tree& t) { fs::create_directory_symlink(t.theirs / "a", t.dir.path() / "link"); },
       "link/b/c", "owned by user 12345"},
      {"our directory below a stranger's", [](const Tree& t) { give(t.theirs / "a/b/c", 0); },
       "theirs/a/b/c", "owned by user 12345"},
      {"links in a ring",
       [](const Tree& t) {
         fs::create_directory_symlink("two", t.dir.path() / "one");
         fs::create_directory_symlink("one", t.dir.path() / "two");
       },
       "one/a", "symbolic links"},
      {"a file on the way", [](const Tree&) {}, "ours/a/b/c/file/d", "Not a directory"},
  };
  return all;
}

std::string refusal(const Error& error) { return error.message; }

}  // namespace

TEST_CASE("every part of a path belongs to root or this user and is closed to others",
          "[cache][trust]") {
  if (geteuid() != 0) BROACH_SKIP("giving a directory away needs root");
  for (const Case& row : cases()) {
    const Tree tree;
    row.change(tree);
    const fs::path path = tree.dir.path() / row.asked;
    std::vector<std::pair<std::string, Result<void>>> walks;
    const auto done = [](const auto& result) {
      return result ? Result<void>() : Result<void>(result.error());
    };
    walks.emplace_back("own", done(Directory::open(path, Trust::kOwn)));
    walks.emplace_back("installed", done(Directory::open(path, Trust::kInstalled)));
    walks.emplace_back("file", done(open_trusted_file(path / "file", {Trust::kInstalled, "file"})));
    const auto keys = TrustedKeys::load({path});
    walks.emplace_back("keys",
                       keys.problems().empty()
                           ? Result<void>()
                           : Result<void>(Error{ErrorCode::kDenied, keys.problems()[0], ""}));
    for (const auto& [name, result] : walks) {
      INFO(row.name << ", " << name << ": " << (result ? "allowed" : refusal(result.error())));
      // A file's directory may be one that others can add to; the file itself is ours.
      const bool sticky_last = std::string_view(row.name).starts_with("a sticky directory in");
      if (row.refused == nullptr || (sticky_last && name == "file")) {
        CHECK(result);
      } else {
        REQUIRE_FALSE(result);
        CHECK(result.error().message.find(row.refused) != std::string::npos);
      }
    }
    // What is signed may lie anywhere.
    const bool there = std::string_view(row.asked) != "one/a" &&
                       std::string_view(row.asked) != "ours/a/b/c/file/d";
    INFO(row.name);
    CHECK(Directory::open(path, Trust::kSigned).ok() == there);
  }
}

TEST_CASE("root and this user are trusted alike, and no other user", "[cache][trust]") {
  if (geteuid() != 0) BROACH_SKIP("being another user needs root");
  const Tree tree;
  give(tree.ours / "a/b/c", kUser);
  const fs::path path = tree.ours / "a/b/c";
  CHECK(as_user(kUser, [&] { return Directory::open(path, Trust::kOwn).ok(); }));
  give(tree.ours / "a", kUser);
  CHECK(as_user(kUser, [&] { return Directory::open(path, Trust::kOwn).ok(); }));
  CHECK(as_user(kStranger, [&] { return !Directory::open(path, Trust::kInstalled).ok(); }));
  CHECK_FALSE(Directory::open(path, Trust::kInstalled));  // Root, in a directory of a user's.
}

TEST_CASE("the files that a walk ends at are regular and nobody else's", "[cache][trust]") {
  const Tree tree;
  const fs::path c = tree.ours / "a/b/c";
  const auto open = [&](const char* name) {
    return open_trusted_file(c / name, {Trust::kInstalled, "secret file"});
  };
  CHECK(open("file"));
  CHECK(open("none").error().code == ErrorCode::kNotFound);
  REQUIRE(mkfifo((c / "pipe").c_str(), 0600) == 0);
  CHECK(open("pipe").error().code == ErrorCode::kDamaged);
  CHECK(open_trusted_file(c, {Trust::kInstalled, "secret file"}).error().code ==
        ErrorCode::kDamaged);
  set_mode(c / "file", 0620);
  CHECK(open("file").error().reason == Reason::kUnsafe);
  set_mode(c / "file", 0600);
  if (geteuid() != 0) BROACH_SKIP("giving a file away needs root");
  give(c / "file", kStranger);
  CHECK(open("file").error().reason == Reason::kUnsafe);
  // Whose code runs here anyway may own it, and what leads to it.
  WalkRule rule{Trust::kInstalled, "worker"};
  rule.also = kStranger;
  CHECK(open_trusted_file(c / "file", rule));
  CHECK(open_trusted_file(tree.theirs / "a/b/c/file", rule));
}

TEST_CASE("what is missing is created on the walk, and never beyond a stranger's link",
          "[cache][trust]") {
  if (geteuid() != 0) BROACH_SKIP("giving a link away needs root");
  const Tree tree;
  const fs::path elsewhere = tree.dir.path() / "elsewhere";
  make(elsewhere);
  fs::create_directory_symlink(elsewhere, tree.ours / ".cache");
  const fs::path cache = tree.ours / ".cache" / "broach";

  SECTION("a link of ours is followed") {
    auto directory = Directory::open(cache, Trust::kOwn);
    REQUIRE(directory);
    CHECK_FALSE(fs::exists(elsewhere / "broach"));
    REQUIRE((*directory)->root(IfMissing::kCreate));
    CHECK(fs::status(elsewhere / "broach").permissions() == fs::perms::owner_all);
  }
  SECTION("a link that a stranger put there is not") {
    give(tree.ours / ".cache", kStranger);
    CHECK_FALSE(Directory::open(cache, Trust::kOwn));
  }
  SECTION("nor one that came after the directory was found missing") {
    fs::remove(tree.ours / ".cache");
    auto directory = Directory::open(cache, Trust::kOwn);
    REQUIRE(directory);
    fs::create_directory_symlink(elsewhere, tree.ours / ".cache");
    give(tree.ours / ".cache", kStranger);
    CHECK_FALSE((*directory)->root(IfMissing::kCreate));
  }
  SECTION("nor is anything made in another user's home") {
    make(tree.ours / "home");
    give(tree.ours / "home", kUser);
    const auto refused = Directory::open(tree.ours / "home/.cache/broach", Trust::kOwn);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("owned by user 23456") != std::string::npos);
    CHECK(fs::is_empty(tree.ours / "home"));
  }
  if (!fs::is_symlink(tree.ours / ".cache") || fs::exists(elsewhere / "broach")) return;
  CHECK(fs::is_empty(elsewhere));
}

TEST_CASE("a directory that is swapped in a loop is the checked one or refused", "[cache][trust]") {
  if (geteuid() != 0) BROACH_SKIP("giving a directory away needs root");
  const Tree tree;
  const fs::path place = tree.dir.path() / "place";
  fs::rename(tree.ours, place);
  const fs::path link = tree.dir.path() / "link";
  fs::create_directory_symlink(tree.theirs, link);
  struct stat good {};
  REQUIRE(stat((place / "a/b/c").c_str(), &good) == 0);
  // The swapper exchanges the directory and a link into a stranger's as fast as it can.
  const pid_t swapper = fork();
  REQUIRE(swapper >= 0);
  if (swapper == 0) {
    for (;;) (void)renameat2(AT_FDCWD, place.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
  }
  int opened = 0;
  int refused = 0;
  bool wrong = false;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((opened < 100 || refused < 100) && std::chrono::steady_clock::now() < until) {
    const auto fd = open_trusted_directory(place / "a/b/c", {Trust::kInstalled, "directory"});
    struct stat status {};
    if (!fd) {
      ++refused;
    } else {
      ++opened;
      wrong |= fstat(fd->get(), &status) != 0 || status.st_ino != good.st_ino;
    }
  }
  kill(swapper, SIGKILL);
  waitpid(swapper, nullptr, 0);
  CHECK_FALSE(wrong);
  CHECK(opened > 0);
  CHECK(refused > 0);
}

TEST_CASE("in a user namespace an owner without a number of its own is a stranger",
          "[cache][trust]") {
  if (geteuid() != 0) BROACH_SKIP("giving a directory away needs root");
  const Tree tree;
  const auto enter = [] { return unshare(CLONE_NEWUSER) == 0; };
  if (!in_child(enter, [] { return true; })) BROACH_SKIP("user namespaces are not allowed here");
  // Without a map this process and everybody else have the same number.
  const auto alike = [&] {
    struct stat status {};
    return stat(tree.theirs.c_str(), &status) == 0 && status.st_uid == geteuid();
  };
  CHECK(in_child(enter, alike));
  const auto refuses = [](const fs::path& path) {
    const auto refused = Directory::open(path, Trust::kInstalled);
    return !refused && refused.error().reason == Reason::kUnsafe &&
           refused.error().message.find("user namespace") != std::string::npos;
  };
  CHECK(in_child(enter, [&] { return refuses(tree.theirs / "a/b/c"); }));
  CHECK(in_child(enter, [&] { return refuses(tree.ours / "a/b/c"); }));
  CHECK(in_child(enter, [] {
    return !check_owner_and_mode("/x", geteuid(), S_IFREG | 0600, Trust::kInstalled);
  }));
}

TEST_CASE("where every user has its own number, nobody is a user like any other",
          "[cache][trust]") {
  if (geteuid() != 0) BROACH_SKIP("being another user needs root");
  constexpr uid_t kNobody = 65534;
  if (stands_for_strangers(kNobody)) BROACH_SKIP("this is a user namespace");
  const TempDir dir;
  give(dir.path(), kNobody);
  CHECK(as_user(kNobody, [&] { return Directory::open(dir.path(), Trust::kOwn).ok(); }));
}

TEST_CASE("a secret key's name that may be the key is not shown", "[cache][trust]") {
  const SecretKey key = SecretKey::generate("mine");
  std::string text = to_text(key);
  text.pop_back();
  for (const std::string& name : {text, text.substr(20, 64)}) {
    const auto refused = read_secret_key(name);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find(text.substr(20, 64)) == std::string::npos);
  }
}

}  // namespace broach::cache
